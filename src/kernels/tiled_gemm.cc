#include "kernels/tiled_gemm.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tiled_gemm.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/columns-inl.h"
#include "kernels/row_tile-inl.h"
#include "kernels/vector_loop-inl.h"

#ifndef HEED_KERNELS_TILED_GEMM_ONCE_
#define HEED_KERNELS_TILED_GEMM_ONCE_
namespace heed::kernels {

// Steps along k that are packed at a time.
inline constexpr int64_t kGemmDepth = 384;
// Floats of B that are packed at a time: they stay in the second-level cache.
inline constexpr int64_t kGemmPanelFloats = 3 << 16;
// Packing one number takes about as long as this many multiply-adds.
inline constexpr int64_t kGemmPackingWork = 8;

struct FreeFloats {
  void operator()(float* p) const { std::free(p); }
};

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of A that are packed together: two tiles, side by side in each step.
inline constexpr int64_t kChunkRows = 2 * kTileRows;

// Steps [from, from + depth) along k, columns [first, last) of the product.
struct GemmBlock {
  int64_t from, depth, first, last;
};

// Columns [col, col + cols) of B, [depth, vectors · lanes] with zeros beyond the last.
HWY_INLINE void pack_columns(const Gemm& g, const GemmBlock& b, int64_t col, int64_t cols,
                             float* HWY_RESTRICT panel) {
  const Floats d;
  const int64_t width = ceil_div(cols, lanes()) * lanes();
  if (g.transpose_b) {
    for (int64_t j = 0; j < cols; j += lanes()) {
      const WeightRows rows{.w = g.b + (col + j) * g.ldb + b.from,
                            .row = g.ldb,
                            .rows = std::min(lanes(), cols - j),
                            .k = b.depth,
                            .prefetch = col + j + 2 * lanes() <= g.n};
      for_each_column(rows, [&](int64_t l, Vector column)
                                HWY_ATTR { hn::Store(column, d, panel + l * width + j); });
    }
    return;
  }
  for (int64_t l = 0; l < b.depth; ++l) {
    const float* from = g.b + (b.from + l) * g.ldb + col;
    for_each_vector(d, cols, [&](int64_t j, auto io) HWY_ATTR {
      hn::Store(io.Load(d, from + j), d, panel + l * width + j);
    });
  }
}

// Rows [i, i + rows) of A, [depth, kChunkRows] with zeros beyond the last.
HWY_INLINE void pack_rows(const Gemm& g, const GemmBlock& b, int64_t i, int64_t rows,
                          float* HWY_RESTRICT chunk) {
  const Floats d;
  if (!g.transpose_a && lanes() == kChunkRows) {
    const WeightRows from{.w = g.a + i * g.lda + b.from,
                          .row = g.lda,
                          .rows = rows,
                          .k = b.depth,
                          .prefetch = i + 2 * kChunkRows <= g.m};
    for_each_column(from, [&](int64_t l, Vector column)
                              HWY_ATTR { hn::Store(column, d, chunk + l * kChunkRows); });
    return;
  }
  if (g.transpose_a && rows == kChunkRows) {
    for (int64_t l = 0; l < b.depth; ++l) {
      const float* from = g.a + (b.from + l) * g.lda + i;
      for_each_vector(d, kChunkRows, [&](int64_t j, auto io) HWY_ATTR {
        io.Store(io.Load(d, from + j), d, chunk + l * kChunkRows + j);
      });
    }
    return;
  }
  const int64_t row = g.transpose_a ? 1 : g.lda, step = g.transpose_a ? g.lda : 1;
  for (int64_t l = 0; l < b.depth; ++l) {
    const float* from = g.a + i * row + (b.from + l) * step;
    for (int64_t r = 0; r < kChunkRows; ++r) {
      chunk[l * kChunkRows + r] = r < rows ? from[r * row] : 0;
    }
  }
}

// A register tile: kTileRows rows of a chunk times a panel.
struct GemmTile {
  const float* a;  // [depth, kChunkRows], from its first row on
  const float* b;  // [depth, vectors · lanes]
  int64_t depth;
  float* c;
  int64_t c_row;
  int64_t rows, cols;  // of C: the tile may have more
  bool add;            // to what is there
};

template <int kVectors>
HWY_NOINLINE void gemm_tile(const GemmTile& t) {
  const Floats d;
  for (int64_t r = 0; r < t.rows; ++r) {
    for (int v = 0; v < kVectors; ++v) hwy::Prefetch(t.c + r * t.c_row + v * lanes());
  }
  Vector sums[kTileRows][kVectors];
  for (int r = 0; r < kTileRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT a = t.a;
  const float* HWY_RESTRICT b = t.b;
  const auto add_step = [&](int64_t l) HWY_ATTR {
    Vector columns[kVectors];
    for (int v = 0; v < kVectors; ++v) columns[v] = hn::Load(d, b + (l * kVectors + v) * lanes());
    for (int r = 0; r < kTileRows; ++r) {
      const Vector element = hn::Set(d, a[l * kChunkRows + r]);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(element, columns[v], sums[r][v]);
      }
    }
  };
  int64_t l = 0;
  for (; l + 4 <= t.depth; l += 4, a += 4 * kChunkRows, b += 4 * kVectors * lanes()) {
    add_step(0);
    add_step(1);
    add_step(2);
    add_step(3);
  }
  for (; l < t.depth; ++l, a += kChunkRows, b += kVectors * lanes()) add_step(0);
  const auto tail = static_cast<size_t>(t.cols - (kVectors - 1) * lanes());
  for (int r = 0; r < kTileRows; ++r) {
    for (int v = 0; v < kVectors && r < t.rows; ++v) {
      float* c = t.c + r * t.c_row + v * lanes();
      if (v < kVectors - 1 || tail == static_cast<size_t>(lanes())) {
        hn::StoreU(t.add ? hn::Add(hn::LoadU(d, c), sums[r][v]) : sums[r][v], d, c);
      } else {
        StoreFirst(t.add ? hn::Add(LoadFirst(d, tail, c), sums[r][v]) : sums[r][v], d, tail, c);
      }
    }
  }
}

// A chunk of rows times all panels of a block.
HWY_INLINE void multiply_chunk(const Gemm& g, const GemmBlock& b, int64_t i, int64_t rows,
                               const float* chunk, const float* panels) {
  for (int64_t col = b.first; col < b.last; col += panel_cols()) {
    const int64_t cols = std::min(panel_cols(), b.last - col);
    for (int64_t r = 0; r < rows; r += kTileRows) {
      const GemmTile t{.a = chunk + r,
                       .b = panels + (col - b.first) * b.depth,
                       .depth = b.depth,
                       .c = g.c + (i + r) * g.ldc + col,
                       .c_row = g.ldc,
                       .rows = std::min<int64_t>(kTileRows, rows - r),
                       .cols = cols,
                       .add = g.accumulate || b.from > 0};
      switch (ceil_div(cols, lanes())) {
        case 1:
          gemm_tile<1>(t);
          break;
        case 2:
          gemm_tile<2>(t);
          break;
        default:
          if constexpr (kTileVectors > 2) gemm_tile<3>(t);
      }
    }
  }
}

void multiply_gemm_block(ThreadPool& pool, const Gemm& g, const GemmBlock& b, float* panels) {
  const int64_t width = panel_cols(), cols = b.last - b.first;
  const int64_t panel_grain = ceil_div(kShareWork, kGemmPackingWork * b.depth * width);
  pool.parallel_for(ceil_div(cols, width), panel_grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t col = b.first + p * width;
      pack_columns(g, b, col, std::min(width, b.last - col), panels + p * width * b.depth);
    }
  });
  const int64_t chunk_grain = ceil_div(kShareWork, b.depth * cols * kChunkRows);
  pool.parallel_for(
      ceil_div(g.m, kChunkRows), chunk_grain, [&](int64_t begin, int64_t end) HWY_ATTR {
        HWY_ALIGN float chunk[kGemmDepth * kChunkRows];
        for (int64_t i = begin * kChunkRows; i < std::min(end * kChunkRows, g.m); i += kChunkRows) {
          const int64_t rows = std::min(kChunkRows, g.m - i);
          pack_rows(g, b, i, rows, chunk);
          multiply_chunk(g, b, i, rows, chunk, panels);
        }
      });
}

void tiled_gemm_kernel(ThreadPool& pool, const Gemm& g) {
  const int64_t width = panel_cols();
  const int64_t depth = even_part(g.k, kGemmDepth);
  const int64_t cols =
      std::min(kGemmPanelFloats / (depth * width) * width, ceil_div(g.n, width) * width);
  const size_t bytes = static_cast<size_t>(ceil_div(depth * cols, 16) * 16) * sizeof(float);
  const std::unique_ptr<float, FreeFloats> panels(
      static_cast<float*>(std::aligned_alloc(64, bytes)));
  if (!panels) throw std::bad_alloc();
  for (int64_t first = 0; first < g.n; first += cols) {
    for (int64_t from = 0; from < g.k; from += depth) {
      multiply_gemm_block(pool, g,
                          {.from = from,
                           .depth = std::min(depth, g.k - from),
                           .first = first,
                           .last = std::min(first + cols, g.n)},
                          panels.get());
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {
namespace {

bool is_intel_with_avx512() {
#if HWY_ARCH_X86
  static const bool is_it = __builtin_cpu_is("intel") && (hwy::SupportedTargets() & HWY_AVX3) != 0;
  return is_it;
#else
  return false;
#endif
}

}  // namespace

HWY_EXPORT(tiled_gemm_kernel);

void tiled_gemm(ThreadPool& pool, const Gemm& product) {
  HWY_DYNAMIC_DISPATCH(tiled_gemm_kernel)(pool, product);
}

// Gradients of weights [out, in] with more outputs than inputs: on Intel's CPUs with AVX-512 the
// library (oneDNN 2.6) reaches 0.6 to 0.7 of its best speed there, and this 0.8 and more. For
// everything else it is as fast or faster (docs/performance.md, "Training").
bool tiled_gemm_is_faster(const Gemm& g) {
  constexpr int64_t kMinCols = 256;
  return g.transpose_a && g.m > g.n && g.n >= kMinCols && is_intel_with_avx512();
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
