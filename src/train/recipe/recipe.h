// A recipe: all settings of a training, in one TOML file.
//
//   const Recipe recipe = read_recipe("recipes/multi30k-en-de.toml", {"train.steps=100"});
//   recipe.train.steps;  recipe.origin("train.steps");   // "--set"
//
// Each key is listed once, in recipe_fields.h, for the reader, --set, --print-config and the
// documentation. Unknown keys, values of the wrong kind and impossible combinations are reported
// together in one error, each with its line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/options.h"
#include "heed/enum_names.h"
#include "heed/search.h"
#include "heed/train.h"
#include "train/optimizer/optimizer.h"
#include "train/optimizer/schedule.h"
#include "train/run/loss.h"

namespace heed {

struct ModelSection {
  std::string preset{};
  std::string from{};
  // Fields of ModelConfig, as JSON, in the order they were given.
  std::vector<std::pair<std::string, std::string>> overrides{};
};

struct DataSection {
  std::string folder{};
  CorpusOptions corpus{};                // `train` and the keys that describe those files
  std::vector<CorpusOptions> corpora{};  // or several corpora, each with its keys
  FilterOptions filters{};
  int64_t batch_tokens = 4096;
  int64_t batch_sentences = 0;
  bool group_by_length = true;
  int64_t pool_examples = 1 << 16;
  double temperature = 1;
  std::string cache{};
};

struct TokenizerSection {
  std::string from{};
  std::string type{};
  int64_t vocabulary = 8000;
  std::vector<std::string> files{};
  bool lowercase = false;
  std::vector<std::string> special_tokens{};
  int64_t sentinels = 0;
  std::vector<std::string> user_symbols{};
  bool byte_fallback = false;
  bool split_digits = false;
};

struct ObjectiveSection {
  ObjectiveOptions options{};
  LossOptions loss{};
  std::string teacher{};
};

// Which checkpoints make the final model.
enum class Averaging { none, last, best };
template <>
inline constexpr std::array kEnumNames<Averaging>{EnumName<Averaging>{Averaging::none, "none"},
                                                  EnumName<Averaging>{Averaging::last, "last"},
                                                  EnumName<Averaging>{Averaging::best, "best"}};

// Activation checkpointing: layers are recomputed in backward. Less memory, a third more work.
enum class Recompute { automatic, on, off };
template <>
inline constexpr std::array kEnumNames<Recompute>{EnumName<Recompute>{Recompute::automatic, "auto"},
                                                  EnumName<Recompute>{Recompute::on, "on"},
                                                  EnumName<Recompute>{Recompute::off, "off"}};

struct TrainSection {
  std::string out{};
  int64_t steps = 0;
  double epochs = 0;
  uint64_t seed = 1;
  int accumulate = 1;
  int64_t log_every = 50;
  int64_t checkpoint_every = 1000;
  int keep_last = 2;
  int keep_best = 1;
  Averaging average = Averaging::none;
  int average_count = 5;
  Recompute recompute = Recompute::automatic;
};

struct ValidateSection {
  std::vector<std::string> files{};
  double share = 0;
  int64_t every = 500;
  int64_t batches = 0;
  std::string metric = "loss";
  int patience = 0;
  int beam = kTranslationBeam;
  double length_penalty = kTranslationLengthPenalty;
  std::string tokenize = "13a";
  int64_t max_sentences = 0;
  int samples = 3;
};

struct Recipe {
  std::string path;
  ModelSection model;
  DataSection data;
  TokenizerSection tokenizer;
  ObjectiveSection objective;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  TrainSection train;
  ValidateSection validate;

  // Where a value came from: "default", "recipe.toml:12" or "--set". `key` is "section.key".
  std::string origin(const std::string& key) const;
  std::map<std::string, std::string> origins;  // of what is not a default
};

// `sets` are "section.key=value", the value as in TOML (a text needs no quotes).
// Throws not_found, or invalid_argument with all problems.
Recipe read_recipe(const std::string& path, const std::vector<std::string>& sets = {});
// The same from a text; `where` names it in messages.
Recipe parse_recipe(const std::string& toml, const std::string& where,
                    const std::vector<std::string>& sets = {});

// The origin of values that the recipe leaves open.
inline constexpr const char* kFittedOrigin = "the tokenizer and the data";

// Every value that a training of this recipe uses, those of the model included. `fitted`: the config
// with the tokenizer and the labels, if these are known.
std::vector<TrainSetting> resolved_settings(const Recipe& recipe,
                                            const ModelConfig* fitted = nullptr);

// The default of every key, by name ("train.seed"), written as in resolved_settings().
std::map<std::string, std::string> default_settings();

// The metrics of an objective: "loss", "bleu", …
std::vector<std::string> metrics_of(Objective objective);

// The model's config without the tokenizer and labels: the preset's or the folder's, with the
// recipe's overrides.
ModelConfig recipe_model_config(const Recipe& recipe);
bool overrides_model(const Recipe& recipe, std::string_view field);

}  // namespace heed
