// BERT's masking (Devlin et al. 2019): some tokens are hidden, and the model is asked for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"

namespace heed {

struct Masking {
  double rate = 0.15;         // of the tokens that are asked for
  double mask_share = 0.8;    // of those: become the mask token …
  double random_share = 0.1;  // … or any token; the others stay as they are
  bool whole_words = false;
  int32_t mask_id = 0;
  int64_t vocabulary = 0;
  // [vocabulary] 1 where a piece begins a word; may be empty when whole_words is off.
  std::span<const uint8_t> begins_word{};
};

// Hides some of tokens[begin …]; labels (as long) get the ids that were there, else kIgnoreLabel.
// `fixed` has 1 for tokens that are never chosen: [CLS], [SEP]. round(rate * choosable) tokens are
// chosen, at least one if there is one; with whole_words as many words as fit into that number.
void mask_tokens(const Masking& masking, std::span<int32_t> tokens, std::span<const uint8_t> fixed,
                 std::span<int32_t> labels, Random& random);

}  // namespace heed
