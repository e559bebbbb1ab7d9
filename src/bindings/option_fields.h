// The options that other languages can set, each listed once, by the name that it has everywhere.
//
//   each_field(options, options, [&](const char* name, auto& field, auto&) { … });   // Python's
//   each_field(options, c_options, [&](const char*, auto& field, const auto& value) { … });
//
// Two structs with fields of the same names go through the list side by side: an options struct of
// the library, which has the defaults, and a language's own.
#pragma once

#include <array>
#include <string_view>

#include "heed/engine.h"
#include "heed/tasks.h"
#include "heed/translate.h"

namespace heed::bindings {

template <class Other, class Visit>
void each_field(EngineOptions& o, Other& other, Visit visit) {
  visit("threads", o.threads, other.threads);
  visit("kv_memory_bytes", o.kv_memory_bytes, other.kv_memory_bytes);
  visit("batch_tokens", o.batch_tokens, other.batch_tokens);
  visit("max_sequences", o.max_sequences, other.max_sequences);
}

template <class Other, class Visit>
void each_field(SearchOptions& o, Other& other, Visit visit) {
  visit("beam", o.beam, other.beam);
  visit("nbest", o.nbest, other.nbest);
  visit("length_penalty", o.length_penalty, other.length_penalty);
  visit("length_penalty_rule", o.length_penalty_rule, other.length_penalty_rule);
  visit("early_stopping", o.early_stopping, other.early_stopping);
  visit("min_new_tokens", o.min_new_tokens, other.min_new_tokens);
  visit("max_new_tokens", o.max_new_tokens, other.max_new_tokens);
  visit("no_repeat_ngram", o.no_repeat_ngram, other.no_repeat_ngram);
  visit("repetition_penalty", o.repetition_penalty, other.repetition_penalty);
  visit("stop", o.stop, other.stop);
  visit("banned", o.banned, other.banned);
  visit("required", o.required, other.required);
  visit("sample", o.sample, other.sample);
  visit("temperature", o.temperature, other.temperature);
  visit("top_k", o.top_k, other.top_k);
  visit("top_p", o.top_p, other.top_p);
  visit("min_p", o.min_p, other.min_p);
  visit("seed", o.seed, other.seed);
}

// Of whatever writes text: these are fields of Request too.
template <class Options, class Other, class Visit>
void each_text_field(Options& o, Other& other, Visit visit) {
  visit("prefix", o.prefix, other.prefix);
  visit("source_language", o.source_language, other.source_language);
  visit("target_language", o.target_language, other.target_language);
}

template <class Other, class Visit>
void each_field(TranslateOptions& o, Other& other, Visit visit) {
  each_text_field(o, other, visit);
  visit("source_prefix", o.source_prefix, other.source_prefix);
  visit("split_sentences", o.split_sentences, other.split_sentences);
}

template <class Other, class Visit>
void each_field(Request& o, Other& other, Visit visit) {
  each_text_field(o, other, visit);
}

template <class Other, class Visit>
void each_field(EmbedOptions& o, Other& other, Visit visit) {
  visit("pooling", o.pooling, other.pooling);
  visit("normalize", o.normalize, other.normalize);
  visit("long_text", o.long_text, other.long_text);
  visit("max_tokens", o.max_tokens, other.max_tokens);
}

template <class Other, class Visit>
void each_field(ScoreOptions& o, Other& other, Visit visit) {
  visit("window", o.window, other.window);
  visit("stride", o.stride, other.stride);
  visit("begin", o.begin, other.begin);
  visit("end", o.end, other.end);
}

// The names of an option's choices, in the order of the enumerators.
template <class Enum>
inline constexpr std::array<std::string_view, 0> kChoices{};
template <>
inline constexpr std::array<std::string_view, 2> kChoices<LengthPenaltyRule>{"power", "gnmt"};
template <>
inline constexpr std::array<std::string_view, 3> kChoices<EarlyStopping>{"no", "yes", "never"};
template <>
inline constexpr std::array<std::string_view, 3> kChoices<EmbedPooling>{"mean", "first", "last"};
template <>
inline constexpr std::array<std::string_view, 2> kChoices<LongText>{"truncate", "chunks"};

}  // namespace heed::bindings
