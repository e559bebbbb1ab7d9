// Search options of translation and generation: beam search, sampling, length, constraints.
//
//   heed::SearchOptions options = model.search_options();   // defaults of generation_config.json
//   options.beam = 4, options.nbest = 4;
//   heed::check(options);                                   // throws invalid_argument
//
// beam = 1 without `sample` is greedy decoding; with `sample` a token is drawn from the
// distribution that temperature, top_k, top_p and min_p leave. The results are those of Hugging
// Face's `generate` with the same options.
//
// describe() is the one list of these options. Command-line flags, HTTP fields and their OpenAPI
// schema, the mapping to C's heed_options, Python's keyword arguments and type stub,
// generation_config.json, check() and docs/search-options.md are made from it.
// docs/adding-a-search-option.md shows how to add one.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heed/enum_names.h"

namespace heed {

// The divisor of a hypothesis's summed log-probability, for `length` new tokens.
enum class LengthPenaltyRule {
  power,  // length^p
  gnmt,   // ((5 + length) / 6)^p (Wu et al. 2016)
};
template <>
inline constexpr std::array<EnumName<LengthPenaltyRule>, 2> kEnumNames<LengthPenaltyRule>{{
    {LengthPenaltyRule::power, "power"},
    {LengthPenaltyRule::gnmt, "gnmt"},
}};

// When a beam search ends that has as many finished hypotheses as beams.
enum class EarlyStopping {
  no,     // when the best live hypothesis, at its present length, would score no better
  yes,    // at once
  never,  // when no live hypothesis could score better at any length
};
template <>
inline constexpr std::array<EnumName<EarlyStopping>, 3> kEnumNames<EarlyStopping>{{
    {EarlyStopping::no, "no"},
    {EarlyStopping::yes, "yes"},
    {EarlyStopping::never, "never"},
}};

// Token id → number that is added to its logit.
using LogitBias = std::map<int32_t, double>;

struct SearchOptions {
  int beam = 1;
  int nbest = 1;  // answers; at most `beam`, or any number of samples
  double length_penalty = 1;
  LengthPenaltyRule length_penalty_rule = LengthPenaltyRule::power;
  EarlyStopping early_stopping = EarlyStopping::no;

  // New tokens are those after the prompt, or after the decoder start token and the prefix.
  int64_t min_new_tokens = 0;  // before the end token
  // With the end token. 0: max_length if that is set; otherwise 3 × source tokens + 64, or 128
  // after a prompt. Never beyond the model's context length.
  int64_t max_new_tokens = 0;
  // The same, counting the prompt or the decoder start token and the prefix too; 0: not set.
  int64_t min_length = 0, max_length = 0;
  std::vector<int32_t> end_ids{};  // end tokens (EOS)
  int32_t forced_first_id = -1;    // ≥ 0: the first new token, such as a language token
  int32_t forced_last_id = -1;     // ≥ 0: the last token when the maximum length is reached
  int no_repeat_ngram = 0;         // > 0: no n-gram of this size twice
  double repetition_penalty = 1;   // > 1: lowers the score of tokens that occur in prompt or answer
  double presence_penalty = 0;     // is subtracted from the logits of generated tokens, once
  double frequency_penalty = 0;    // the same, for each occurrence
  LogitBias logit_bias{};
  std::vector<std::string> stop{};  // strings that end the answer, which is cut before them

  // Phrases that must not, or must, occur: as text for models with a tokenizer, or as ids. A
  // required phrase is placed where it costs least, if the length allows it; this needs a beam.
  std::vector<std::string> banned{}, required{};
  std::vector<std::vector<int32_t>> banned_ids{}, required_ids{};

  bool sample = false;
  double temperature = 1;  // 0: argmax
  int top_k = 0;           // > 0: sample from the k most probable tokens
  double top_p = 1;        // < 1: nucleus sampling
  double min_p = 0;        // > 0: minimum probability, relative to the most probable token
  uint64_t seed = 0;       // random seed; apply() draws one if the caller sets none

  bool token_scores = false;  // Answer::token_scores: each token's log-probability
  bool alignments = false;    // Answer::alignments: the source token of each token
};

// One option: its names, its range and its help text.
struct OptionInfo {
  const char* name;  // of the member in C++ and C, and of the Python keyword
  const char* help;
  // Range of a number, both ends included. The default is valid even outside: it means "not set".
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  bool samples = false;                // setting it switches sampling on
  const char* flag = nullptr;          // nullptr: --name with '-' for '_'; "": no flag
  const char* http = nullptr;          // HTTP field; nullptr: name; "": none
  const char* hugging_face = nullptr;  // key of generation_config.json; nullptr: none
};

std::string flag_of(const OptionInfo& info);  // "" without a flag
inline const char* http_name_of(const OptionInfo& info) {
  return info.http ? info.http : info.name;
}

// Calls visit(info, field of `o`, field of `other` with the same name) for each option that
// callers can set. `other` is another SearchOptions, or a struct of another language. Not listed:
// what only a model's files or a task set (end_ids, forced ids, lengths with the prompt, phrases as
// ids) and what the result contains.
template <class Options, class Other, class Visit>
requires std::same_as<std::remove_const_t<Options>, SearchOptions>
void describe(Options& o, Other& other, Visit&& visit) {
  visit(OptionInfo{.name = "beam",
                   .help = "beam size; 1 is greedy",
                   .min = 1,
                   .max = 1024,
                   .hugging_face = "num_beams"},
        o.beam, other.beam);
  visit(OptionInfo{.name = "nbest",
                   .help =
                       "answers to each input, best first; raises the beam size if that is not set",
                   .min = 1,
                   .max = 1024,
                   .http = "n"},
        o.nbest, other.nbest);
  visit(
      OptionInfo{
          .name = "length_penalty",
          .help =
              "beam search: exponent of the length penalty; 0 is none, more favours long answers",
          .min = -100,
          .max = 100,
          .hugging_face = "length_penalty"},
      o.length_penalty, other.length_penalty);
  visit(OptionInfo{.name = "length_penalty_rule",
                   .help = "power: sum log p / length^P; gnmt: sum log p / ((5 + length) / 6)^P"},
        o.length_penalty_rule, other.length_penalty_rule);
  visit(OptionInfo{.name = "early_stopping",
                   .help = "end the beam search when as many hypotheses as beams are finished",
                   .hugging_face = "early_stopping"},
        o.early_stopping, other.early_stopping);
  visit(OptionInfo{.name = "min_new_tokens",
                   .help = "minimum number of new tokens",
                   .min = 0,
                   .max = std::numeric_limits<int32_t>::max(),
                   .hugging_face = "min_new_tokens"},
        o.min_new_tokens, other.min_new_tokens);
  visit(OptionInfo{.name = "max_new_tokens",
                   .help = "maximum number of new tokens",
                   .min = 1,
                   .max = std::numeric_limits<int32_t>::max(),
                   .http = "max_tokens",
                   .hugging_face = "max_new_tokens"},
        o.max_new_tokens, other.max_new_tokens);
  visit(OptionInfo{.name = "no_repeat_ngram",
                   .help = "no n-gram of this size occurs twice; 0 is off",
                   .min = 0,
                   .max = 1000,
                   .hugging_face = "no_repeat_ngram_size"},
        o.no_repeat_ngram, other.no_repeat_ngram);
  visit(OptionInfo{.name = "repetition_penalty",
                   .help = "above 1, tokens of the prompt and the answer become less probable",
                   .min = 0.01,
                   .max = 100,
                   .hugging_face = "repetition_penalty"},
        o.repetition_penalty, other.repetition_penalty);
  visit(OptionInfo{.name = "presence_penalty",
                   .help = "is subtracted from the logits of tokens that were generated before",
                   .min = -2,
                   .max = 2},
        o.presence_penalty, other.presence_penalty);
  visit(OptionInfo{.name = "frequency_penalty",
                   .help = "is subtracted from a token's logit for each time it was generated",
                   .min = -2,
                   .max = 2},
        o.frequency_penalty, other.frequency_penalty);
  visit(OptionInfo{.name = "logit_bias",
                   .help = "is added to the logits of these token ids; -100 bans a token",
                   .min = -100,
                   .max = 100},
        o.logit_bias, other.logit_bias);
  visit(
      OptionInfo{.name = "stop", .help = "string that ends the answer, not part of it; repeatable"},
      o.stop, other.stop);
  visit(
      OptionInfo{.name = "banned", .help = "text that must not occur; repeatable", .flag = "--ban"},
      o.banned, other.banned);
  visit(OptionInfo{.name = "required",
                   .help = "text that must occur (needs a beam); repeatable",
                   .flag = "--require"},
        o.required, other.required);
  visit(OptionInfo{.name = "sample",
                   .help = "sample tokens; implied by temperature, top_k, top_p and min_p",
                   .flag = "",
                   .http = "",
                   .hugging_face = "do_sample"},
        o.sample, other.sample);
  visit(OptionInfo{.name = "temperature",
                   .help = "sampling: divides the logits; 0 is argmax",
                   .min = 0,
                   .max = 1000,
                   .samples = true,
                   .hugging_face = "temperature"},
        o.temperature, other.temperature);
  visit(OptionInfo{.name = "top_k",
                   .help = "sample from the k most probable tokens; 0 is all",
                   .min = 0,
                   .samples = true,
                   .hugging_face = "top_k"},
        o.top_k, other.top_k);
  visit(
      OptionInfo{
          .name = "top_p",
          .help = "nucleus sampling: from the most probable tokens with this total probability",
          .min = 0,
          .max = 1,
          .samples = true,
          .hugging_face = "top_p"},
      o.top_p, other.top_p);
  visit(OptionInfo{.name = "min_p",
                   .help = "sample no token less probable than this times the most probable one",
                   .min = 0,
                   .max = 1,
                   .samples = true,
                   .hugging_face = "min_p"},
        o.min_p, other.min_p);
  // Every command has --seed.
  visit(OptionInfo{.name = "seed", .help = "random seed of sampling", .flag = ""}, o.seed,
        other.seed);
}

// visit(info, field), for any options struct with a describe().
template <class Options, class Visit>
void for_each_option(Options& o, Visit&& visit) {
  describe(o, o, [&](const OptionInfo& info, auto& field, auto&) { visit(info, field); });
}

// Whether the result depends on the seed: it samples, and not at temperature 0.
inline bool is_random(const SearchOptions& o) { return o.sample && o.temperature > 0; }

// Another number at each call. Of 32 bits, so that every JSON reader keeps it.
uint64_t random_seed();

// Throws invalid_argument with all problems.
void check(const SearchOptions& options);

// The options that a caller sets, over defaults.
//
//   heed::SearchOverrides given;
//   given.values.nbest = 3, given.set("nbest");
//   heed::SearchOptions options = apply(model.search_options(), given);
struct SearchOverrides {
  SearchOptions values{};
  bool greedy = false;  // neither a beam nor sampling

  void set(const std::string& name) { names.push_back(name); }
  bool has(const std::string& name) const;

  std::vector<std::string> names{};  // of the options in `values` that are set
};

// `defaults` with the overrides; lists are appended. Where the caller leaves the kind of search
// open, it follows from what is set: `greedy` or a beam size ends sampling, a sampling option
// starts it, and more answers than beams raise the beam size. Throws invalid_argument for
// contradictions, such as a beam and a temperature. Does not call check().
//
// Where the result samples and no seed is given, the seed is random_seed(): samples differ from call
// to call, and can be repeated with the seed that was used (Result::seed).
SearchOptions apply(SearchOptions defaults, const SearchOverrides& overrides);

// Defaults of translation where the model's files name none (Vaswani et al. 2017, section 6.1).
inline constexpr int kTranslationBeam = 4;
inline constexpr double kTranslationLengthPenalty = 0.6;

}  // namespace heed
