// The f32 GEMM of gradients: all transposes, strided, accumulating. By oneDNN, or by tiled_gemm.h
// where that is faster.
//
//   gemm(pool, {.transpose_b = true, .m = rows, .n = out, .k = in, .a = x, .lda = in, …});
//
// oneDNN is called single-threaded, on disjoint blocks of the output whose boundaries depend on the
// shape alone; the thread pool runs the blocks. So the result has the same bits for any number of
// threads, and there is no second thread pool.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace heed::kernels {

// C [m, n] = op(A) [m, k] · op(B) [k, n], or C += … when `accumulate`.
// Row-major: A is stored [m, k] with rows `lda` apart, or [k, m] when transpose_a; B likewise.
struct Gemm {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t lda = 0;
  const float* b = nullptr;
  int64_t ldb = 0;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
};

void gemm(ThreadPool& pool, const Gemm& product);

// How gemm() splits the output: into blocks of rows, or of columns. A function of the shape alone.
struct GemmPartition {
  bool by_rows = true;
  int64_t size = 0;  // rows, or columns
  int64_t blocks = 1;

  int64_t begin(int64_t block) const;  // begin(blocks) is size
};
GemmPartition gemm_partition(int64_t m, int64_t n, int64_t k);

}  // namespace heed::kernels
