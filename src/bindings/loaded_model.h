// A model as the bindings hold it: loaded once, with what answers for it made when first asked for.
//
//   LoadedModel model("models/en-de", {.threads = 2});
//   model.translator().translate("Hello.").text;
//
// Safe to use from many threads. Throws what heed::Model and the classes that answer throw; a model
// of another kind than a task needs is told when the task is asked for.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "heed/engine.h"
#include "heed/tasks.h"
#include "heed/translate.h"

namespace heed::bindings {

// Made by the first thread that wants it. An error leaves it unmade.
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
  // The threads go to all that answers; the rest is the engine's.
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
