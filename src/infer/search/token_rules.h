// Changes of one row of scores by the search options, before a token is chosen: penalties, bans and
// forced tokens.
//
//   TokenRules rules{.options = &options, .ids = sequence, .prompt_tokens = 7};
//   if (rules.are_set()) apply(rules, scores, scratch);      // scores [vocabulary]
//
// A rule is one entry of kRules in token_rules.cc. It reads the options and this sequence alone, so
// that a result does not depend on the batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/search.h"

namespace heed {

struct TokenRules {
  const SearchOptions* options = nullptr;  // nullptr: no penalties
  std::span<const int32_t> ids{};          // the sequence so far, the prompt first
  size_t prompt_tokens = 0;                // the first of them that were not generated
  std::span<const int32_t> banned{};
  int32_t forced = -1;  // ≥ 0: this token and no other, with score 0

  bool are_set() const;  // whether apply() changes anything

  std::span<const int32_t> new_ids() const { return ids.subspan(prompt_tokens); }
};

// Working memory of apply(); one for each thread.
struct TokenScratch {
  std::vector<int32_t> counts{};  // [vocabulary]: 0 between calls
};

// Changes scores (logits or log-probabilities); those of banned tokens become -infinity. Ids outside
// of the vocabulary are skipped.
void apply(const TokenRules& rules, std::span<float> scores, TokenScratch& scratch);

// Throws invalid_argument for options with token ids outside of the vocabulary.
void check_token_ids(const SearchOptions& options, int64_t vocabulary);

}  // namespace heed
