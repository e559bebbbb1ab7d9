// Rotary position embedding (Su et al., 2021, eq. 34): each pair of coordinates of a query or key
// is rotated by an angle proportional to its position.
#pragma once

#include <cstdint>

namespace heed::kernels {

// Which coordinates make a pair: (i, i + rotary_dim / 2) as in Llama, or (2i, 2i + 1) as in the
// paper and GPT-J.
enum class RopeLayout { half, interleaved };

struct Rope {
  float* x;          // [rows, heads, head_dim], rotated in place
  int64_t stride;    // from one row of x to the next, in floats
  const float* cos;  // [rows, rotary_dim / 2]
  const float* sin;  // [rows, rotary_dim / 2]
  int64_t rows;
  int heads, head_dim;
  int rotary_dim;  // even; later coordinates of a head are not rotated
  RopeLayout layout = RopeLayout::half;
  bool inverse = false;  // rotate back: the gradient, as the inverse of a rotation is its transpose
};

// (a, b) -> (a cos - b sin, a sin + b cos) for every pair of every head of every row.
void rope(const Rope& rope);

}  // namespace heed::kernels
