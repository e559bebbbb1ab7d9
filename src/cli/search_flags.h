// The flags that translate and generate have in common: the model, raw ids, and how to search.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "heed/engine.h"

namespace heed::cli {

struct SearchFlags : CommonFlags {
  std::string model;
  std::string inputs;  // a JSON file of raw ids
  bool greedy = false;
  std::optional<int> beam, nbest, max_new_tokens, min_new_tokens, no_repeat_ngram;
  std::optional<double> length_penalty, repetition_penalty;
  std::string length_penalty_rule;
  bool early_stopping = false;
  std::vector<std::string> banned, required;
  std::string prefix;
  bool scores = false;
  int workers = 1;
  std::optional<int> batch_tokens;
  std::optional<double> kv_memory_mb;
};
void add_search_flags(Command command, SearchFlags& flags);

// Where neither a flag nor the model's files say.
struct SearchDefaults {
  int beam = 1;
  double length_penalty = 1;
};
SearchOptions search_options(const SearchFlags& flags, const Model& model,
                             const SearchDefaults& defaults);
// What the library would say of these in the words of its options, in those of the flags.
void check_flags(const SearchOptions& options);
EngineOptions engine_options(const SearchFlags& flags);

// Throws invalid_argument when --model is missing.
Model load_model(const SearchFlags& flags, const std::string& verb);

// Runs the raw ids of flags.inputs and returns {"sequences": …, "scores": …} or, without --json, a
// line of ids for each answer.
std::string run_inputs(const SearchFlags& flags, const Model& model, const SearchOptions& search);

}  // namespace heed::cli
