// BERT's masking (Devlin et al. 2019), with optional whole-word masking.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"

namespace heed {

struct Masking {
  double rate = 0.15;         // fraction of tokens that are selected
  double mask_share = 0.8;    // of those: replaced by the mask token …
  double random_share = 0.1;  // … or by a random token; the others are unchanged
  bool whole_words = false;
  int32_t mask_id = 0;
  int64_t vocabulary = 0;
  // [vocabulary] 1 for tokens that begin a word; may be empty without whole_words.
  std::span<const uint8_t> begins_word{};
};

// Masks some of `tokens`; `labels` get the original ids of selected tokens, otherwise kIgnoreLabel.
// `fixed` is 1 for tokens that are never selected: [CLS], [SEP]. round(rate * eligible) tokens are
// selected, at least one if possible; with whole_words, as many words as fit into that number.
void mask_tokens(const Masking& masking, std::span<int32_t> tokens, std::span<const uint8_t> fixed,
                 std::span<int32_t> labels, Random& random);

}  // namespace heed
