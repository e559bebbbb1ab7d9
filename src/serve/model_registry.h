// The models that are served, by name; they may come and go while requests run.
//
//   ModelRegistry registry({.threads = 4});
//   registry.load("en-de", "models/en-de");
//   std::shared_ptr<ServedModel> model = registry.find("en-de");   // lives as long as it is held
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "heed/engine.h"
#include "heed/model_files.h"
#include "heed/tasks.h"
#include "heed/translate.h"

namespace heed::serve {

struct ModelSettings {
  int threads = 0;                               // of each model; 0: every CPU
  uint64_t kv_memory_bytes = uint64_t{1} << 30;  // of each model that generates
};

// Which languages a model translates between; any of the first into any of the second.
struct Languages {
  std::set<std::string> sources{}, targets{};
  bool has_tokens = false;  // the model is told which: it must be given them
};

// A model and what answers with it, made when first asked for. Safe to use from many threads.
class ServedModel {
 public:
  ServedModel(std::string name, std::string folder, const ModelSettings& settings);

  const std::string& name() const { return name_; }
  const std::string& folder() const { return folder_; }
  const Model& model() const { return model_; }
  const Languages& languages() const { return languages_; }
  int64_t loaded_at() const { return loaded_at_; }  // seconds since 1970

  // Each throws Error: unsupported for another kind of model, not_found without a tokenizer.
  const std::shared_ptr<Engine>& engine();
  Translator& translator();
  Parser& parser();
  const Filler& filler();
  const Classifier& classifier();
  const Tagger& tagger();
  const Embedder& embedder();
  const Scorer& scorer();
  const Predictor& predictor();
  const EmbedOptions& embed_settings();
  const ModelInfo& info();
  TaskOptions task_options() const { return {.threads = settings_.threads}; }

  // It was trained to write trees. Where nobody knows what a model was trained for, it is taken to
  // translate; whoever names it may have it parse all the same.
  bool is_parser() const;
  // What it is offered for: "translate", "complete", "classify", …
  std::vector<std::string> abilities() const;
  // Nothing while no engine runs.
  std::optional<EngineStatistics> statistics() const;

 private:
  const std::string name_, folder_;
  const ModelSettings settings_;
  const Model model_;
  const Languages languages_;
  const int64_t loaded_at_;

  mutable std::mutex mutex_;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Translator> translator_;
  std::unique_ptr<Parser> parser_;
  std::unique_ptr<Filler> filler_;
  std::unique_ptr<Classifier> classifier_;
  std::unique_ptr<Tagger> tagger_;
  std::unique_ptr<Embedder> embedder_;
  std::unique_ptr<Scorer> scorer_;
  std::unique_ptr<Predictor> predictor_;
  std::unique_ptr<EmbedOptions> embed_settings_;
  std::unique_ptr<ModelInfo> info_;
};

using ServedModelPtr = std::shared_ptr<ServedModel>;

class ModelRegistry {
 public:
  explicit ModelRegistry(const ModelSettings& settings) : settings_(settings) {}

  // In the place of one with the same name, once it is loaded; requests under way keep theirs.
  // Throws Error; then everything is as it was.
  void load(const std::string& name, const std::string& folder);
  bool unload(const std::string& name);
  // All of them from their folders. The errors of those that stay as they were, one a line.
  std::vector<std::string> reload();

  ServedModelPtr find(const std::string& name) const;  // null: there is none
  std::vector<ServedModelPtr> all() const;             // in the order of loading

 private:
  const ModelSettings settings_;
  std::mutex loading_;  // one at a time
  mutable std::mutex mutex_;
  std::vector<ServedModelPtr> models_;
};

// What a folder is called unless told otherwise: its own name.
std::string default_model_name(const std::string& folder);
// Letters, digits and . _ - : what fits into an address. Throws invalid_argument.
void check_model_name(const std::string& name);

}  // namespace heed::serve
