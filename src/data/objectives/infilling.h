// BART's noise (Lewis et al. 2020): sentences change places, and spans become one mask token each.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/philox.h"

namespace heed {

// The text with ceil(share * sentences) of its sentences in other places (some may land where they
// were). `starts`: where sentences begin, but for the first.
std::vector<int32_t> permute_sentences(std::span<const int32_t> text,
                                       std::span<const int32_t> starts, double share,
                                       Random& random);

struct Infilling {
  double rate = 0.3;     // of the words that spans cover
  double mean_span = 3;  // words a span on average (Poisson); spans of none insert a mask
  int32_t mask_id = 0;
  // [vocabulary] 1 where a piece begins a word: spans are of words. Empty: of tokens.
  std::span<const uint8_t> begins_word{};
};

// As fairseq's denoising task does it: lengths are drawn until they cover ceil(rate * words) words,
// places without repeating; spans that overlap become one. The result is never longer than the
// text: masks that would make it so are not inserted.
std::vector<int32_t> infill(const Infilling& infilling, std::span<const int32_t> text,
                            Random& random);

// A number from Poisson's distribution (Knuth's product of uniform numbers; for small means).
int64_t draw_poisson(double mean, Random& random);

}  // namespace heed
