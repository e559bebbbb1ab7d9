// y = x Wᵀ for a packed weight (packed_weight.h), batch-invariant as matmul.h: a row's result depends
// on that row and the weight alone, not on the other rows, the number of threads or the width of a
// vector.
//
// M rows, N outputs, K inputs; i is a row, j an output, l an input.
//
// f32, f16 and bf16 give the bits of matmul() with the dequantized weight.
//
// int8 and int4 quantize x too; integer sums are exact. int8 rounds a row to 8 bits, scaled by the
// row's largest magnitude:
//
//   s(i) = max_l |x(i, l)| / 127,  q(i, l) = round(x(i, l) · (127 / max)), ties to even
//   y(i, j) = (float(Σ_l q(i, l) · w(l, j)) · s(i)) · scale(j)
//
// int4 rounds a row to 12 bits, each of the weight's groups g of inputs scaled by its largest
// magnitude. That error is less than a hundredth of the weight's. Groups are added in f32, in order:
//
//   s(i, g) = max_{l in g} |x(i, l)| / 2047,  q(i, l) = round(x(i, l) · (2047 / max))
//   c(i, g, j) = (float(Σ_{l in g} q(i, l) · w(l, j)) · s(i, g)) · scale(g, j)
//   y(i, j) = ((0 + c(i, 0, j)) + c(i, 1, j)) + …
//
// Results have the same bits on every instruction set: integers never saturate and float operations
// are not fused. A row with an infinity or a NaN becomes all NaN; where max is below 1e-30, s is 0.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/matmul/packed_weight.h"
#include "kernels/rows/activation.h"

namespace heed::kernels {

// y [m, n] = activation(x [m, k] · Wᵀ + bias) + residual. The epilogue (bias, activation, residual)
// gives the bits of bias_activation() (activation.h) and then add() (elementwise.h). Rows are x_row
// and y_row floats apart; y overlaps neither x nor the residual.
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

// f32: 0. f16 and bf16: 0 for GEMV, else up to 74 KB for each thread of the pool. int8 and int4: the
// rows of x as integers.
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
