// The batch-invariant f32 matmul of the forward: a row's result depends on that row and the weight
// alone.
//
//   matmul(pool, {.m = rows, .n = out, .k = in, .x = x, .x_row = in, .w = weight, .w_row = in,
//                 .y = y, .y_row = out, .scratch = scratch});
//
// Each element of y is one chain of fused multiply-adds over K in order, starting at 0:
//
//   y(i, j) = fma(x(i, k-1), w(j, k-1), … fma(x(i, 1), w(j, 1), fma(x(i, 0), w(j, 0), 0)))
//
// So its bits do not depend on the number of rows, on the split into blocks and threads, or on the
// width of a vector. A sentence gets the same result alone and in any batch, and there can be a GEMM
// path for many rows (bound by arithmetic) and a GEMV path for up to 8 (bound by reading the
// weight). gemm() (kernels/matmul/gemm.h) is not batch-invariant.
//
// The bits may differ between a CPU with fused multiply-add and one without.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace heed::kernels {

// M rows, N outputs, K inputs: y [m, n] = x [m, k] · Wᵀ for W [n, k], the layout of PyTorch's Linear.
// Rows are x_row, w_row and y_row floats apart; y overlaps neither.
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

// Room to pack the weight: 0 for GEMV, up to 72 KB for each thread for up to 256 rows, and up to
// 768 KB for more. `threads` is that of the pool.
int64_t matmul_scratch_floats(int64_t m, int64_t n, int64_t k, int threads);

}  // namespace heed::kernels
