// The matrix product of every forward: rows times a weight, where a row's result depends on that
// row and the weight alone.
//
//   matmul(pool, {.m = rows, .n = out, .k = in, .x = x, .x_row = in, .w = weight,
//                      .w_row = in, .y = y, .y_row = out, .scratch = scratch});
//
// Each element of y is one chain of fused multiply-adds over k in order, starting at 0:
//
//   y(i, j) = fma(x(i, k-1), w(k-1, j), … fma(x(i, 1), w(1, j), fma(x(i, 0), w(0, j), 0)))
//
// So its bits do not depend on how many rows there are, on a row's place among them, on how the
// work is cut into blocks and shares, or on the width of a vector. That is why a sentence gets the
// same result alone and in any batch, and why there can be one path for many rows (bound by
// arithmetic) and one for few (bound by reading the weight) with nobody noticing but the clock.
// A library's product (kernels/matmul/gemm.h) promises nothing of the kind.
//
// The bits may differ between a CPU with fused multiply-add and one without.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace heed::kernels {

// y [m, n] = x [m, k] · Wᵀ for W [n, k], the layout of PyTorch's Linear. Rows are x_row, w_row and y_row floats apart; y overlaps neither.
struct Matmul {
  int64_t m = 0, n = 0, k = 0;
  const float* x = nullptr;
  int64_t x_row = 0;
  const float* w = nullptr;
  int64_t w_row = 0;
  float* y = nullptr;
  int64_t y_row = 0;
  float* scratch = nullptr;  // matmul_scratch_floats(…), aligned as an Arena's
};

void matmul(ThreadPool& pool, const Matmul& product);

// What matmul() wants to pack the weight into: nothing for few rows, 72 KB a thread at most
// for some, and 768 KB for many. `threads` is that of the pool.
int64_t matmul_scratch_floats(int64_t m, int64_t n, int64_t k, int threads);

}  // namespace heed::kernels
