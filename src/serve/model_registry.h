// The loaded models by name; models may be loaded and unloaded while requests run.
//
//   ModelRegistry registry({.threads = 4});
//   registry.load("en-de", "models/en-de");
//   std::shared_ptr<ServedModel> model = registry.find("en-de");   // shared ownership
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
  int threads = 0;                               // per model; 0: all CPUs
  uint64_t kv_memory_bytes = uint64_t{1} << 30;  // KV cache of each model that generates
};

// The languages of a translation model: any source into any target.
struct Languages {
  std::set<std::string> sources{}, targets{};
  bool has_tokens = false;  // languages are selected by tokens: requests must name them
};

// A model with its engine and tasks, each created on first use. Thread-safe.
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

  // Whether the config says that it was trained to generate trees. A model of unknown task counts as a
  // translator; /v1/heed/parse still accepts it by name.
  bool is_parser() const;
  // "translate", "generate", "classify", …
  std::vector<std::string> abilities() const;
  // Empty before the engine is created.
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

  // Replaces a model of the same name after loading; running requests keep the old one. On Error
  // nothing has changed.
  void load(const std::string& name, const std::string& folder);
  bool unload(const std::string& name);
  // Reloads all models. Returns the errors of those that could not be loaded and are kept.
  std::vector<std::string> reload();

  ServedModelPtr find(const std::string& name) const;  // null: no such model
  std::vector<ServedModelPtr> all() const;             // in the order of loading

 private:
  const ModelSettings settings_;
  std::mutex loading_;  // one at a time
  mutable std::mutex mutex_;
  std::vector<ServedModelPtr> models_;
};

// The name of a model without --model NAME=: the folder's name.
std::string default_model_name(const std::string& folder);
// Letters, digits and . _ - only, for use in paths. Throws invalid_argument.
void check_model_name(const std::string& name);

}  // namespace heed::serve
