// How a model's answer is searched for: the options of translation and generation.
//
//   heed::SearchOptions options = model.search_options();   // what the model's own files ask for
//   options.beam = 4, options.nbest = 4;
//
// beam = 1 without `sample` takes the likeliest token each time; `sample` draws one. With a beam,
// the `beam` likeliest beginnings are followed at once. The results are those of Hugging Face's
// `generate` with the options of the same meaning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

// What the sum of log-probabilities of a text of `length` new tokens is divided by.
enum class LengthPenaltyRule {
  power,  // length^p
  gnmt,   // ((5 + length) / 6)^p (Wu et al. 2016)
};

// When a beam search ends that has as many finished texts as beams.
enum class EarlyStopping {
  no,     // when what is unfinished, at its present length, would score no better
  yes,    // at once
  never,  // when it could not score better at any length
};

struct SearchOptions {
  int beam = 1;
  int nbest = 1;  // answers; at most `beam`, or any number of samples
  double length_penalty = 1;
  LengthPenaltyRule length_penalty_rule = LengthPenaltyRule::power;
  EarlyStopping early_stopping = EarlyStopping::no;

  // New tokens are those after the prompt, or the decoder's start, and the prefix.
  int64_t min_new_tokens = 0;  // before the token that ends the text
  // With the token that ends the text. 0: max_length if that is set; otherwise 3 times the source
  // and 64, or 128 after a prompt. Never more than the model has positions for.
  int64_t max_new_tokens = 0;
  // The same with the prompt or the decoder's start and the prefix; 0: none.
  int64_t min_length = 0, max_length = 0;
  std::vector<int32_t> end_ids{};  // any of these ends a text
  int32_t forced_first_id = -1;    // ≥ 0: the first new token, such as a language
  int32_t forced_last_id = -1;     // ≥ 0: the last one of a text that reaches its greatest length
  int no_repeat_ngram = 0;         // > 0: no n tokens in a row twice
  double repetition_penalty = 1;   // > 1: tokens that have occurred become less likely
  std::vector<std::string> stop{};  // texts that end a generation; they are not part of the result

  // Texts that must not, or must, occur; as text for models with a tokenizer, or as ids. What is
  // required occurs if the length allows it, at the place where it costs least (needs a beam).
  std::vector<std::string> banned{}, required{};
  std::vector<std::vector<int32_t>> banned_ids{}, required_ids{};

  bool sample = false;
  double temperature = 1;  // 0: the likeliest
  int top_k = 0;           // > 0: one of the k likeliest
  double top_p = 1;        // < 1: one of the likeliest with this probability together
  double min_p = 0;        // > 0: none less likely than this times the likeliest
  uint64_t seed = 0;       // the same seed gives the same text

  bool token_scores = false;  // each token's log-probability in the result
  bool alignments = false;    // which part of the source each token comes from
};

// Throws invalid_argument with everything that is wrong.
void check(const SearchOptions& options);

}  // namespace heed
