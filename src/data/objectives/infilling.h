// BART's noise (Lewis et al. 2020): sentence permutation and text infilling (one mask per span).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/philox.h"

namespace heed {

// Permutes ceil(share * sentences) of the sentences (some may stay in place). `starts`: the starts of
// all sentences except the first.
std::vector<int32_t> permute_sentences(std::span<const int32_t> text,
                                       std::span<const int32_t> starts, double share,
                                       Random& random);

struct Infilling {
  double rate = 0.3;     // fraction of words in spans
  double mean_span = 3;  // words per span (Poisson); a span of length 0 inserts a mask
  int32_t mask_id = 0;
  // [vocabulary] 1 for tokens that begin a word: spans of words. Empty: spans of tokens.
  std::span<const uint8_t> begins_word{};
};

// As fairseq's denoising task: lengths are drawn until they cover ceil(rate * words) words, positions
// without replacement; overlapping spans are merged. The result is never longer than the text: masks
// that would exceed it are not inserted.
std::vector<int32_t> infill(const Infilling& infilling, std::span<const int32_t> text,
                            Random& random);

// A Poisson-distributed number (Knuth's algorithm; for small means).
int64_t draw_poisson(double mean, Random& random);

}  // namespace heed
