#include "kernels/row_product.h"

#include <algorithm>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_product.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/vector_loop-inl.h"

#ifndef HEED_KERNELS_ROW_PRODUCT_ONCE_
#define HEED_KERNELS_ROW_PRODUCT_ONCE_
namespace heed::kernels {

// Up to this many rows the weight is used as it comes from memory; for more it is packed first.
inline constexpr int64_t kFewRows = 8;
// Floats of the weight that are packed at a time: with luck they stay in the last-level cache.
inline constexpr int64_t kPackedFloats = 3 << 16;
// The widest panel of any instruction set.
inline constexpr int64_t kMaxPanelCols = 48;
// The part of a panel that one register tile walks through before the next tile begins.
inline constexpr int64_t kDepth = 384;
// Rows that share what they read of the packed weight while it is in the second-level cache.
inline constexpr int64_t kBlockRows = 256;
// Multiply-adds that are worth a thread: about 10 µs of one core's work.
inline constexpr int64_t kShareWork = 1 << 18;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

// Rows × vectors of y held in registers. AVX-512 and NEON have 32 registers: 8 × 3 sums, three
// vectors of the weight and a broadcast element of x. AVX2 and SSE have 16: 6 × 2 sums.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kTileRows = 8;
inline constexpr int kTileVectors = 3;
#else
inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = 2;
#endif

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Floats())); }
HWY_INLINE int64_t panel_cols() { return kTileVectors * lanes(); }

// ---- reading a weight [out, in] by columns ------------------------------------------------------

#if HWY_TARGET != HWY_SCALAR
// A vector of 128-bit blocks, block b from p + 4 · b · row.
HWY_INLINE Vector load_blocks(const float* HWY_RESTRICT p, int64_t row) {
  const Floats d;
  if constexpr (HWY_MAX_BYTES == 16) {
    return hn::LoadU(d, p);
  } else if constexpr (HWY_MAX_BYTES == 32) {
    const hn::Half<Floats> half;
    return hn::Combine(d, hn::LoadU(half, p + 4 * row), hn::LoadU(half, p));
  } else {
    Vector v = hn::LoadDup128(d, p);
    v = hn::IfThenElse(hn::FirstN(d, 4), v, hn::LoadDup128(d, p + 4 * row));
    v = hn::IfThenElse(hn::FirstN(d, 8), v, hn::LoadDup128(d, p + 8 * row));
    return hn::IfThenElse(hn::FirstN(d, 12), v, hn::LoadDup128(d, p + 12 * row));
  }
}

// Four columns of as many rows as a vector has lanes: columns[c] has w[r * row + c] in lane r.
// Lanes 4b … 4b + 3 are a 4 × 4 transpose within 128-bit block b.
HWY_INLINE void load_columns(const float* HWY_RESTRICT w, int64_t row, Vector (&columns)[4]) {
  const Floats d;
  const hn::Repartition<double, Floats> pairs;
  const Vector row0 = load_blocks(w, row), row1 = load_blocks(w + row, row);
  const Vector row2 = load_blocks(w + 2 * row, row), row3 = load_blocks(w + 3 * row, row);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
  columns[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  columns[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  columns[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  columns[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}

#endif  // HWY_TARGET != HWY_SCALAR

// One column of `rows` rows, at most a vector of them; zeros beyond.
HWY_INLINE Vector load_column(const float* w, int64_t row, int64_t rows) {
  HWY_ALIGN float column[HWY_MAX_BYTES / sizeof(float)] = {};
  for (int64_t r = 0; r < rows; ++r) column[r] = w[r * row];
  return hn::Load(Floats(), column);
}

// Calls each(l, column) for the columns l = 0, 1, … of a weight [rows, k]: at most a vector of
// rows.
template <class Each>
HWY_INLINE void for_each_column(const float* w, int64_t row, int64_t rows, int64_t k,
                                const Each& each) {
  int64_t l = 0;
#if HWY_TARGET != HWY_SCALAR
  if (rows == lanes()) {
    for (; l + 4 <= k; l += 4) {
      Vector columns[4];
      load_columns(w + l, row, columns);
      for (int c = 0; c < 4; ++c) each(l + c, columns[c]);
    }
  }
#endif
  for (; l < k; ++l) each(l, load_column(w + l, row, rows));
}

// ---- many rows ----------------------------------------------------------------------------------

// A panel is up to kTileVectors vectors of columns of W, packed as [k, vectors · lanes] with zeros
// beyond n.
HWY_INLINE void pack_panel(const RowProduct& p, int64_t col, float* HWY_RESTRICT panel) {
  const Floats d;
  const int64_t cols = std::min(panel_cols(), p.n - col);
  const int64_t vectors = ceil_div(cols, lanes());
  const int64_t width = vectors * lanes();
  if (p.layout == LinearLayout::out_in) {
    for (int64_t v = 0; v < vectors; ++v) {
      const int64_t j = v * lanes();
      for_each_column(p.w + (col + j) * p.w_row, p.w_row, std::min(lanes(), cols - j), p.k,
                      [&](int64_t l, Vector column)
                          HWY_ATTR { hn::Store(column, d, panel + l * width + j); });
    }
    return;
  }
  for (int64_t l = 0; l < p.k; ++l) {
    for_each_vector(d, cols, [&](int64_t j, auto io) HWY_ATTR {
      hn::Store(io.Load(d, p.w + l * p.w_row + col + j), d, panel + l * width + j);
    });
  }
}

// A register tile: kRows rows of x, kVectors vectors of a panel, `depth` steps along k.
struct Tile {
  const float* x;  // [rows, depth]
  int64_t x_row;
  const float* panel;  // [depth, vectors · lanes]
  int64_t depth;
  float* y;
  int64_t y_row;
  int64_t cols;    // of y; the last vector may have less than all its lanes
  bool continues;  // the sums so far are in y
};

template <int kRows, int kVectors, bool kPart>
HWY_INLINE void multiply_tile(const Tile& t) {
  const Floats d;
  const int64_t step = kVectors * lanes();
  const size_t tail = static_cast<size_t>(t.cols - (kVectors - 1) * lanes());
  Vector sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const float* y = t.y + r * t.y_row + v * lanes();
      if (!t.continues) {
        hwy::Prefetch(y);
        sums[r][v] = hn::Zero(d);
      } else if (kPart && v == kVectors - 1) {
        sums[r][v] = LoadFirst(d, tail, y);
      } else {
        sums[r][v] = hn::LoadU(d, y);
      }
    }
  }
  const float* HWY_RESTRICT x = t.x;
  const float* HWY_RESTRICT panel = t.panel;
  const auto one_step = [&](int64_t l) HWY_ATTR {
    Vector columns[kVectors];
    for (int v = 0; v < kVectors; ++v) columns[v] = hn::Load(d, panel + l * step + v * lanes());
    for (int r = 0; r < kRows; ++r) {
      const Vector element = hn::Set(d, x[r * t.x_row + l]);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(element, columns[v], sums[r][v]);
      }
    }
  };
  int64_t l = 0;
  for (; l + 4 <= t.depth; l += 4, x += 4, panel += 4 * step) {
    one_step(0);
    one_step(1);
    one_step(2);
    one_step(3);
  }
  for (; l < t.depth; ++l, ++x, panel += step) one_step(0);
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      float* y = t.y + r * t.y_row + v * lanes();
      if (kPart && v == kVectors - 1) {
        StoreFirst(sums[r][v], d, tail, y);
      } else {
        hn::StoreU(sums[r][v], d, y);
      }
    }
  }
}

template <int kVectors, bool kPart>
HWY_NOINLINE void multiply_rows(Tile t, int64_t rows) {
  const auto advance = [&](int64_t by) {
    t.x += by * t.x_row;
    t.y += by * t.y_row;
    rows -= by;
  };
  for (; rows >= kTileRows; advance(kTileRows)) multiply_tile<kTileRows, kVectors, kPart>(t);
  for (; rows >= 4; advance(4)) multiply_tile<4, kVectors, kPart>(t);
  for (; rows >= 1; advance(1)) multiply_tile<1, kVectors, kPart>(t);
}

// `rows` rows of x times one panel.
HWY_INLINE void multiply_panel(const Tile& t, int64_t rows) {
  const bool part = t.cols % lanes() != 0;
  switch (ceil_div(t.cols, lanes())) {
    case 1:
      return part ? multiply_rows<1, true>(t, rows) : multiply_rows<1, false>(t, rows);
    case 2:
      return part ? multiply_rows<2, true>(t, rows) : multiply_rows<2, false>(t, rows);
    default:
      if constexpr (kTileVectors > 2) {
        return part ? multiply_rows<3, true>(t, rows) : multiply_rows<3, false>(t, rows);
      }
  }
}

// Rows [begin, end) of x times the panels in scratch, which are columns [first, last) of W.
void multiply_block(const RowProduct& p, int64_t begin, int64_t end, int64_t first, int64_t last) {
  const int64_t depth = ceil_div(p.k, ceil_div(p.k, kDepth));  // parts of about the same length
  for (int64_t i = begin; i < end; i += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, end - i);
    for (int64_t l = 0; l < p.k; l += depth) {
      for (int64_t col = first; col < last; col += panel_cols()) {
        const int64_t cols = std::min(panel_cols(), last - col);
        const int64_t width = ceil_div(cols, lanes()) * lanes();
        multiply_panel({.x = p.x + i * p.x_row + l,
                        .x_row = p.x_row,
                        .panel = p.scratch + (col - first) * p.k + l * width,
                        .depth = std::min(depth, p.k - l),
                        .y = p.y + i * p.y_row + col,
                        .y_row = p.y_row,
                        .cols = cols,
                        .continues = l > 0},
                       rows);
      }
    }
  }
}

void multiply_many_rows(ThreadPool& pool, const RowProduct& p) {
  const int64_t width = panel_cols();
  const int64_t block = std::max<int64_t>(kPackedFloats / (p.k * width), 1) * width;
  for (int64_t first = 0; first < p.n; first += block) {
    const int64_t last = std::min(first + block, p.n);
    const int64_t panels = ceil_div(last - first, width);
    const int64_t panel_grain = ceil_div(kShareWork, 8 * p.k * width);
    pool.parallel_for(panels, panel_grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t i = begin; i < end; ++i) {
        pack_panel(p, first + i * width, p.scratch + i * width * p.k);
      }
    });
    const int64_t tiles = ceil_div(p.m, kTileRows);
    const int64_t tile_grain = ceil_div(kShareWork, p.k * (last - first) * kTileRows);
    pool.parallel_for(tiles, tile_grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      multiply_block(p, begin * kTileRows, std::min(end * kTileRows, p.m), first, last);
    });
  }
}

// ---- few rows -----------------------------------------------------------------------------------

// All of x times a vector of columns of W [out, in]. The weight is turned in registers on its way
// from memory, which is what all wait for.
template <int kRows>
HWY_INLINE void few_rows_out_in(const RowProduct& p, int64_t col) {
  const Floats d;
  const int64_t cols = std::min(lanes(), p.n - col);
  Vector sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  for_each_column(p.w + col * p.w_row, p.w_row, cols, p.k, [&](int64_t l, Vector column) HWY_ATTR {
    for (int r = 0; r < kRows; ++r) {
      const Vector element = hn::Set(d, p.x[r * p.x_row + l]);
      sums[r] = hn::MulAdd(element, column, sums[r]);
    }
  });
  for (int r = 0; r < kRows; ++r) {
    float* y = p.y + r * p.y_row + col;
    if (cols == lanes()) {
      hn::StoreU(sums[r], d, y);
    } else {
      StoreFirst(sums[r], d, static_cast<size_t>(cols), y);
    }
  }
}

// Rows of W [in, out] that are read side by side: streams that the prefetchers follow.
inline constexpr int kStreams = 8;

// y [kRows, begin … end) += kCount rows of W from l on, times the elements of x for them.
template <int kRows, int kCount>
HWY_INLINE void add_streams(const RowProduct& p, int64_t l, int64_t begin, int64_t end) {
  const Floats d;
  for_each_vector(d, end - begin, [&](int64_t i, auto io) HWY_ATTR {
    const int64_t j = begin + i;
    Vector sums[kRows];
    for (int r = 0; r < kRows; ++r) {
      sums[r] = l == 0 ? hn::Zero(d) : io.Load(d, p.y + r * p.y_row + j);
    }
    for (int s = 0; s < kCount; ++s) {
      const Vector column = io.Load(d, p.w + (l + s) * p.w_row + j);
      for (int r = 0; r < kRows; ++r) {
        sums[r] = hn::MulAdd(hn::Set(d, p.x[r * p.x_row + l + s]), column, sums[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) io.Store(sums[r], d, p.y + r * p.y_row + j);
  });
}

template <int kRows>
void few_rows(const RowProduct& p, int64_t begin, int64_t end) {
  if (p.layout == LinearLayout::out_in) {
    for (int64_t col = begin; col < end; col += lanes()) few_rows_out_in<kRows>(p, col);
    return;
  }
  int64_t l = 0;
  for (; l + kStreams <= p.k; l += kStreams) add_streams<kRows, kStreams>(p, l, begin, end);
  for (; l < p.k; ++l) add_streams<kRows, 1>(p, l, begin, end);
}

void few_rows_of_any_number(const RowProduct& p, int64_t begin, int64_t end) {
  switch (p.m) {
    case 1:
      return few_rows<1>(p, begin, end);
    case 2:
      return few_rows<2>(p, begin, end);
    case 3:
      return few_rows<3>(p, begin, end);
    case 4:
      return few_rows<4>(p, begin, end);
    case 5:
      return few_rows<5>(p, begin, end);
    case 6:
      return few_rows<6>(p, begin, end);
    case 7:
      return few_rows<7>(p, begin, end);
    default:
      return few_rows<8>(p, begin, end);
  }
}

void multiply_few_rows(ThreadPool& pool, const RowProduct& p) {
  // Whole vectors, and a cache line of y for one thread only.
  const int64_t unit = std::max<int64_t>(lanes(), 16);
  const int64_t grain = ceil_div(kShareWork, p.k * unit) * unit;
  pool.parallel_for(p.n, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    few_rows_of_any_number(p, begin, end);
  });
}

void row_product_kernel(ThreadPool& pool, const RowProduct& p) {
  p.m <= kFewRows ? multiply_few_rows(pool, p) : multiply_many_rows(pool, p);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(row_product_kernel);

void row_product(ThreadPool& pool, const RowProduct& p) {
  HEED_CHECK(p.m >= 0 && p.n >= 0 && p.k >= 0, "row_product: a negative size");
  const int64_t w_cols = p.layout == LinearLayout::out_in ? p.k : p.n;
  HEED_CHECK(p.x_row >= p.k && p.w_row >= w_cols && p.y_row >= p.n,
             "row_product: rows that overlap");
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {  // an empty sum
    for (int64_t i = 0; i < p.m; ++i) std::fill_n(p.y + i * p.y_row, p.n, 0.0f);
    return;
  }
  HWY_DYNAMIC_DISPATCH(row_product_kernel)(pool, p);
}

int64_t row_product_scratch_floats(int64_t m, int64_t n, int64_t k) {
  if (m <= kFewRows || n == 0) return 0;
  const int64_t all = k * ceil_div(n, kMaxPanelCols) * kMaxPanelCols;
  return std::min(all, std::max(kPackedFloats, k * kMaxPanelCols));
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
