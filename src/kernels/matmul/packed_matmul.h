// Rows times a packed weight (packed_weight.h): what matmul.h is for plain matrices, with the
// same promise. A row's result depends on that row and the weight alone: not on how many rows there
// are, on a row's place among them, on the number of threads, or on the width of a vector.
//
// f32, f16 and bf16 are matmul() of the floats that the weight stands for (dequantize_packed_row), bit for bit.
//
// int8 and int4 round x too, and sum products of integers, exactly. int8 rounds a row to 8 bits, by
// the row's own largest magnitude:
//
//   s(i) = max_l |x(i, l)| / 127,  q(i, l) = round(x(i, l) · (127 / max)), ties to even
//   y(i, j) = (float(Σ_l q(i, l) · w(l, j)) · s(i)) · scale(j)
//
// int4 rounds a row to 12 bits, each of the weight's groups g of inputs by its own largest
// magnitude, which loses less than a hundredth of what 4 bits of the weight have lost. The groups
// are added up as floats, in order:
//
//   s(i, g) = max_{l in g} |x(i, l)| / 2047,  q(i, l) = round(x(i, l) · (2047 / max))
//   c(i, g, j) = (float(Σ_{l in g} q(i, l) · w(l, j)) · s(i, g)) · scale(g, j)
//   y(i, j) = ((0 + c(i, 0, j)) + c(i, 1, j)) + …
//
// The integers are the same on every instruction set: none saturates, and the floats that they
// become are exact for int4. So are the results, for nothing is fused. A row with an infinity or a
// NaN becomes NaN throughout; where max is below 1e-30, s is 0.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/matmul/packed_weight.h"
#include "kernels/rows/activation.h"

namespace heed::kernels {

// y [m, n] = activation(x [m, k] · Wᵀ + bias) + residual, where bias and activation give the bits
// that bias_activation() (activation.h) would give afterwards, and the residual those of add()
// (elementwise.h) after that. Rows are x_row and y_row floats apart; y overlaps neither x nor the
// residual.
struct PackedMatmul {
  int64_t m = 0;
  const float* x = nullptr;
  int64_t x_row = 0;
  PackedWeight w;
  const float* bias = nullptr;  // [n], or null for none
  Activation activation = Activation::none;
  const float* residual = nullptr;  // [m, n], or null for none
  int64_t residual_row = 0;
  float* y = nullptr;
  int64_t y_row = 0;
  float* scratch = nullptr;  // packed_matmul_scratch_floats(…), aligned as an Arena's
};

void packed_matmul(ThreadPool& pool, const PackedMatmul& product);

// Nothing for f32; for f16 at most 74 KB a thread, and nothing for few rows; for int8 and int4 the
// rows of x as integers. `threads` is that of the pool.
int64_t packed_matmul_scratch_floats(int64_t m, const PackedWeight& w, int threads);

// packed_matmul() of each type, for the table of weight_types.h.
void f32_matmul(ThreadPool& pool, const PackedMatmul& product);
int64_t f32_matmul_scratch_floats(int64_t m, const PackedWeight& w, int threads);
void f16_matmul(ThreadPool& pool, const PackedMatmul& product);
void bf16_matmul(ThreadPool& pool, const PackedMatmul& product);
int64_t dequantizing_matmul_scratch_floats(int64_t m, const PackedWeight& w, int threads);
void int8_matmul(ThreadPool& pool, const PackedMatmul& product);
int64_t int8_matmul_scratch_floats(int64_t m, const PackedWeight& w, int threads);
void int4_matmul(ThreadPool& pool, const PackedMatmul& product);
int64_t int4_matmul_scratch_floats(int64_t m, const PackedWeight& w, int threads);

}  // namespace heed::kernels
