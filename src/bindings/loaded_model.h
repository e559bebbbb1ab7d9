// A model of the bindings: loaded once; its engine and tasks are created on first use.
//
//   LoadedModel model("models/en-de", {.threads = 2});
//   model.translator().translate("Hello.").text;
//
// Thread-safe. Throws the errors of heed::Model and of the task classes; unsupported for a model of
// another kind on the first use of a task.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "heed/engine.h"
#include "heed/tasks.h"
#include "heed/translate.h"

namespace heed::bindings {

// Created on first use. After an error the next use tries again.
template <class T>
class Lazy {
 public:
  template <class Make>
  std::shared_ptr<T> get(Make make) {
    const std::lock_guard lock(mutex_);
    if (!value_) value_ = make();
    return value_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<T> value_;
};

class LoadedModel {
 public:
  // Tasks use options.threads; the engine all options.
  LoadedModel(const std::string& folder, const EngineOptions& options)
      : folder_(folder), options_(options), model_(Model::load(folder)) {}

  const std::string& folder() const { return folder_; }
  const Model& model() const { return model_; }

  std::shared_ptr<Engine> engine() {
    return engine_.get([&] { return std::make_shared<Engine>(model_, options_); });
  }
  Translator translator() { return Translator(engine()); }
  std::shared_ptr<Classifier> classifier() { return task(classifier_); }
  std::shared_ptr<Embedder> embedder() { return task(embedder_); }
  std::shared_ptr<Scorer> scorer() { return task(scorer_); }

 private:
  template <class Task>
  std::shared_ptr<Task> task(Lazy<Task>& lazy) {
    return lazy.get(
        [&] { return std::make_shared<Task>(model_, TaskOptions{.threads = options_.threads}); });
  }

  const std::string folder_;
  const EngineOptions options_;
  const Model model_;
  Lazy<Engine> engine_;
  Lazy<Classifier> classifier_;
  Lazy<Embedder> embedder_;
  Lazy<Scorer> scorer_;
};

}  // namespace heed::bindings
