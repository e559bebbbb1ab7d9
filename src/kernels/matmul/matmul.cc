#include "kernels/matmul/matmul.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/matmul/tiled_gemm.h"
#include "kernels/matmul/work_split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/matmul.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/highway.h"
#include "kernels/matmul/columns-inl.h"
#include "kernels/matmul/matmul_tile-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

#ifndef HEED_KERNELS_MATMUL_ONCE_
#define HEED_KERNELS_MATMUL_ONCE_
namespace heed::kernels {

// M rows, N outputs, K inputs. Sizes are measured (docs/results/experiments.md); none of them changes
// a result.

// GEMV up to this many rows: reading the weight takes the time.
inline constexpr int64_t kGemvRows = 8;
// Up to this many rows, each thread packs one panel of the weight at a time; for more, several
// (tiled_gemm.h).
inline constexpr int64_t kPanelGemmRows = 256;
// Rows of x that stay in L1 while all packed panels are used.
inline constexpr int64_t kBlockRows = 16;

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- packing ------------------------------------------------------------------------------------

// A part of Wᵀ: columns [first, last), steps [from, to) along K.
struct Block {
  int64_t first, last, from, to;
  int64_t depth() const { return to - from; }
};

// Packs the panel of a block from column `col` on: up to kTileVectors vectors of columns, [depth,
// vectors · lanes] with zeros beyond the last column.
HWY_INLINE void pack_panel(const Matmul& p, const Block& b, int64_t col,
                           float* HWY_RESTRICT panel) {
  pack_columns({.w = p.w + col * p.w_row + b.from,
                .row = p.w_row,
                .rows = std::min(panel_cols(), b.last - col),
                .k = b.depth(),
                .prefetch = true},
               p.n - col, panel);
}

// Rows [begin, end) of x times a block of W, packed panel after panel.
void gemm_block(const Matmul& p, const Block& b, const float* packed, int64_t begin, int64_t end) {
  const int64_t rows = even_part(end - begin, kBlockRows);
  for (int64_t i = begin; i < end; i += rows) {
    for (int64_t col = b.first; col < b.last; col += panel_cols()) {
      const int64_t cols = std::min(panel_cols(), b.last - col);
      multiply_panel({.x = p.x + i * p.x_row + b.from,
                      .x_row = p.x_row,
                      .panel = packed + (col - b.first) * b.depth(),
                      .panel_step = ceil_div(cols, lanes()) * lanes(),
                      .depth = b.depth(),
                      .y = p.y + i * p.y_row + col,
                      .y_row = p.y_row,
                      .cols = cols,
                      .continues = b.from > 0},
                     std::min(rows, end - i));
    }
  }
}

// ---- GEMM ---------------------------------------------------------------------------------------

// Splits the panels of W among the threads. A thread packs one part of a panel at a time, which stays
// in its cache, and multiplies all rows with it.
void gemm_by_panels(ThreadPool& pool, const Matmul& p) {
  const int64_t width = panel_cols();
  const int64_t depth = even_part(p.k, kPackedDepth);
  const int64_t panels = ceil_div(p.n, width);
  const int64_t shares = std::min(
      {static_cast<int64_t>(pool.threads()), panels, ceil_div(p.m * p.n * p.k, kGrainWork)});
  pool.parallel_for(shares, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t share = begin; share < end; ++share) {
      float* packed = p.scratch + share * depth * width;
      for (int64_t i = panels * share / shares; i < panels * (share + 1) / shares; ++i) {
        const int64_t col = i * width;
        for (int64_t from = 0; from < p.k; from += depth) {
          const Block b{col, std::min(col + width, p.n), from, std::min(from + depth, p.k)};
          pack_panel(p, b, col, packed);
          gemm_block(p, b, packed, 0, p.m);
        }
      }
    }
  });
}

// ---- GEMV ---------------------------------------------------------------------------------------

// All rows of x times a vector of outputs, which are transposed in registers.
template <int kRows>
HWY_INLINE void gemv_columns(const Matmul& p, int64_t col) {
  const FloatTag d;
  // For a single row the hardware prefetcher is fast enough.
  const WeightRows rows{.w = p.w + col * p.w_row,
                        .row = p.w_row,
                        .rows = std::min(lanes(), p.n - col),
                        .k = p.k,
                        .prefetch = kRows > 1 && col + 2 * lanes() <= p.n};
  FloatVec sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  for_each_column(rows, [&](int64_t l, FloatVec column) HWY_ATTR {
    for (int r = 0; r < kRows; ++r) {
      sums[r] = hn::MulAdd(hn::Set(d, p.x[r * p.x_row + l]), column, sums[r]);
    }
  });
  for (int r = 0; r < kRows; ++r) {
    float* y = p.y + r * p.y_row + col;
    if (rows.rows == lanes()) {
      hn::StoreU(sums[r], d, y);
    } else {
      StoreFirst(sums[r], d, static_cast<size_t>(rows.rows), y);
    }
  }
}

// Outputs [begin, end).
template <int kRows>
void gemv_range(const Matmul& p, int64_t begin, int64_t end) {
  for (int64_t col = begin; col < end; col += lanes()) gemv_columns<kRows>(p, col);
}

void gemv_rows(const Matmul& p, int64_t begin, int64_t end) {
  switch (p.m) {
    case 1:
      return gemv_range<1>(p, begin, end);
    case 2:
      return gemv_range<2>(p, begin, end);
    case 3:
      return gemv_range<3>(p, begin, end);
    case 4:
      return gemv_range<4>(p, begin, end);
    case 5:
      return gemv_range<5>(p, begin, end);
    case 6:
      return gemv_range<6>(p, begin, end);
    case 7:
      return gemv_range<7>(p, begin, end);
    default:
      static_assert(kGemvRows == 8);
      return gemv_range<8>(p, begin, end);
  }
}

void gemv(ThreadPool& pool, const Matmul& p) {
  // Whole vectors; no two threads write to one cache line of y.
  const int64_t unit = std::max<int64_t>(lanes(), 16);
  pool.parallel_for(p.n, Grain(ceil_div(kGrainWork, p.k), unit),
                    [&](int64_t begin, int64_t end) HWY_ATTR { gemv_rows(p, begin, end); });
}

void matmul_kernel(ThreadPool& pool, const Matmul& p) {
  static_assert(HWY_MAX_BYTES / sizeof(float) * kTileVectors <= kMaxPanelCols);
  if (p.m <= kGemvRows) {
    gemv(pool, p);
  } else {
    gemm_by_panels(pool, p);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(matmul_kernel);

void matmul(ThreadPool& pool, const Matmul& p) {
  HEED_CHECK(p.m >= 0 && p.n >= 0 && p.k >= 0, "matmul: sizes must not be negative");
  HEED_CHECK(p.x_row >= p.k && p.w_row >= p.k && p.y_row >= p.n,
             "matmul: x_row and w_row must be at least K, y_row at least N");
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {  // an empty sum
    for (int64_t i = 0; i < p.m; ++i) std::fill_n(p.y + i * p.y_row, p.n, 0.0f);
    return;
  }
  if (p.m > kPanelGemmRows) {
    ordered_gemm(pool,
                 {.transpose_b = true,
                  .m = p.m,
                  .n = p.n,
                  .k = p.k,
                  .a = p.x,
                  .lda = p.x_row,
                  .b = p.w,
                  .ldb = p.w_row,
                  .c = p.y,
                  .ldc = p.y_row},
                 p.scratch);
    return;
  }
  HWY_DYNAMIC_DISPATCH(matmul_kernel)(pool, p);
}

int64_t matmul_scratch_floats(int64_t m, int64_t n, int64_t k, int threads) {
  if (m <= kGemvRows || n == 0 || k == 0) return 0;
  if (m > kPanelGemmRows) return tiled_gemm_scratch_floats(m, n, k, threads);
  const int64_t panel = even_part(k, kPackedDepth) * kMaxPanelCols;
  return std::min(panel * ceil_div(n, kMaxPanelCols), panel * threads);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
