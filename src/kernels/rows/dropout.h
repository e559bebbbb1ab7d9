// Dropout whose choices are a function of (seed, step, site, element): the backward draws them
// again instead of keeping a mask, and any split over threads or instruction sets draws the same.
//
// An element takes 16 random bits, so that one Philox block serves eight. Elements go in groups of
// 128; group g uses the blocks 16g … 16g + 15, and element j of a group takes half h = j / 16 (word
// h / 2 of the block, its low half when h is even) of block 16g + j % 16. It is kept when its bits
// are >= threshold = round(65536 p), and then scaled by 65536 / (65536 - threshold), the inverse of
// the exact probability to be kept. (Srivastava et al., 2014.)
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace heed::kernels {

struct Dropout {
  RandomKey key;
  float p = 0;  // the probability to be dropped, in [0, 1)
};

// Elements that share 16 blocks; work is split at multiples of it.
inline constexpr int64_t kDropoutGroup = 128;

// y = dropout(x) for the elements first_element … of the stream; first_element is a multiple of
// kDropoutGroup. y may be x. The gradient is the same function of dy.
void dropout(const Dropout& dropout, int64_t first_element, const float* x, float* y, int64_t n);

// y = residual + dropout(x); y may be x or residual.
void dropout_add(const Dropout& dropout, int64_t first_element, const float* x,
                 const float* residual, float* y, int64_t n);

// The factor of each element, 0 or the scale, from the group first_group on. A row that starts at
// its own group can be drawn alone: attention does so for each row of keys.
void dropout_factors(const Dropout& dropout, uint64_t first_group, float* factors, int64_t n);

}  // namespace heed::kernels
