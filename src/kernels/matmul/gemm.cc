#include "kernels/matmul/gemm.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "kernels/matmul/tiled_gemm.h"

namespace heed::kernels {
namespace {

// A GEMM below twice this is not worth waking a thread for: about 10 µs of one core's work.
constexpr double kMinBlockFlops = 1e6;
// Every block packs the shared operand again, and oneDNN is slow on thin blocks. Blocks of this many
// rows (or columns) cost a single thread little (docs/results/experiments.md).
constexpr int64_t kBlockSize = 1024;
constexpr int64_t kMinBlockSize = 64;
constexpr int64_t kMaxBlocks = 16;
// Blocks start at multiples of this: a cache line of floats, and whole vectors.
constexpr int64_t kBlockMultiple = 16;

// oneDNN reads the number of threads from the OpenMP runtime. Setting it to one, and restoring the
// caller's setting after, prevents oneDNN from creating threads.
class SingleThreadedLibrary {
 public:
  SingleThreadedLibrary() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~SingleThreadedLibrary() {
    if (before_ != 1) omp_set_num_threads(before_);
  }

 private:
  int before_;
};

// Rows [i, i + rows) × columns [j, j + cols) of C.
void gemm_block(const Gemm& g, int64_t i, int64_t rows, int64_t j, int64_t cols) {
  const float* a = g.a + (g.transpose_a ? i : i * g.lda);
  const float* b = g.b + (g.transpose_b ? j * g.ldb : j);
  const dnnl_status_t status =
      dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', rows, cols, g.k, 1.0f, a,
                 g.lda, b, g.ldb, g.accumulate ? 1.0f : 0.0f, g.c + i * g.ldc + j, g.ldc);
  HEED_CHECK(status == dnnl_success,
             "gemm: dnnl_sgemm must succeed, got status " + std::to_string(status));
}

void check_shape(const Gemm& g) {
  HEED_CHECK(g.m >= 0 && g.n >= 0 && g.k >= 0, "gemm: sizes must not be negative");
  HEED_CHECK(
      g.lda >= (g.transpose_a ? g.m : g.k) && g.ldb >= (g.transpose_b ? g.k : g.n) && g.ldc >= g.n,
      "gemm: a leading dimension must be at least as long as its row");
}

}  // namespace

GemmPartition gemm_partition(int64_t m, int64_t n, int64_t k) {
  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  GemmPartition cut;
  cut.by_rows = m >= n;  // the longer side, so that the shorter one is packed again
  cut.size = cut.by_rows ? m : n;
  // A power of two, because so are most thread counts, and the shares should be equal.
  const auto worth_it = [&](int64_t blocks) {
    const bool large_enough = cut.size >= blocks * kBlockSize;
    const bool needed = blocks == 2 && cut.size >= 2 * kMinBlockSize;  // or one core would idle
    return flops >= static_cast<double>(blocks) * kMinBlockFlops && (large_enough || needed);
  };
  while (cut.blocks < kMaxBlocks && worth_it(2 * cut.blocks)) cut.blocks *= 2;
  return cut;
}

int64_t GemmPartition::begin(int64_t block) const {
  const int64_t at = size * block / blocks;
  return std::min(size, (at + kBlockMultiple - 1) / kBlockMultiple * kBlockMultiple);
}

void gemm(ThreadPool& pool, const Gemm& g) {
  check_shape(g);
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) {  // an empty sum; the library leaves C alone here
    if (!g.accumulate) {
      for (int64_t i = 0; i < g.m; ++i) std::fill_n(g.c + i * g.ldc, g.n, 0.0f);
    }
    return;
  }
  if (tiled_gemm_is_faster(g)) {
    tiled_gemm(pool, g);
    return;
  }
  const GemmPartition cut = gemm_partition(g.m, g.n, g.k);
  pool.parallel_for(cut.blocks, 1, [&](int64_t begin, int64_t end) {
    const SingleThreadedLibrary guard;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = cut.begin(block);
      const int64_t count = cut.begin(block + 1) - first;
      if (count == 0) continue;
      if (cut.by_rows) {
        gemm_block(g, first, count, 0, g.n);
      } else {
        gemm_block(g, 0, g.m, first, count);
      }
    }
  });
}

}  // namespace heed::kernels
