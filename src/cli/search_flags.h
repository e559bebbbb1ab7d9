// The flags that translate and generate share: the model, raw ids, search and engine options.
#pragma once

#include <string>

#include "cli/flags.h"
#include "heed/engine.h"

namespace heed::cli {

struct SearchFlags : CommonFlags {
  std::string model;
  std::string inputs;  // a JSON file of raw ids
  SearchOverrides search{};
  EngineOptions engine{};
  std::string prefix;
  Truncation truncate = Truncation::no;  // of generate, and of raw ids
  bool scores = false;
};
// One flag for each option that describe() lists, of SearchOptions and of EngineOptions.
void add_search_flags(Command command, SearchFlags& flags);

// --truncate, for commands whose input may not be cut without being asked.
void add_truncate_flag(Command command, SearchFlags& flags);

// The defaults with the flags over them. Throws invalid_argument. Without --seed, the seed of
// sampling is random; it is printed on standard error.
SearchOptions search_options(const SearchFlags& flags, const SearchOptions& defaults);
EngineOptions engine_options(const SearchFlags& flags);

// Throws invalid_argument when --model is missing.
Model load_model(const SearchFlags& flags, const std::string& verb);

// "warning: the prompt has 700 tokens, …"
void warn_of_truncation(const Result& result, const std::string& input);

// Runs the raw ids of flags.inputs. Returns {"sequences": …, "scores": …} or, without --json, one
// line of ids for each answer.
std::string run_inputs(const SearchFlags& flags, const Model& model, const SearchOptions& search);

}  // namespace heed::cli
