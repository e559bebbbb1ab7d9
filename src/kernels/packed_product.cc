#include "kernels/packed_product.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed_product.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/highway.h"
#include "kernels/f16-inl.h"
#include "kernels/row_tile-inl.h"
#include "kernels/vector_loop-inl.h"

#ifndef HEED_KERNELS_PACKED_PRODUCT_ONCE_
#define HEED_KERNELS_PACKED_PRODUCT_ONCE_
namespace heed::kernels {

// None of these sizes shows in a result.

// Up to this many rows, the weight becomes floats in registers, on its way from memory. For more,
// a block of it is turned into floats once, in cache, and meets all rows there.
inline constexpr int64_t kRowsInRegisters = 4;
// Steps along k that are turned into floats at a time; whole groups of int4.
inline constexpr int64_t kFloatDepth = 384;
// Rows that such a block meets before the next one: x must stay in the second-level cache.
inline constexpr int64_t kFloatBlockRows = 256;
// Multiply-adds that are worth waking a thread for.
inline constexpr int64_t kPackedShareWork = 1 << 18;

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Some columns of a panel, and steps [from, to) of them.
struct PanelPart {
  const std::byte* numbers;  // the panel's
  const std::byte* scales;   // int4
  int64_t width;             // of the panel
  int64_t col;               // the first column, in the panel
  int64_t from, to;
};

// Calls each(l, columns) for every step, columns being kVectors vectors of floats.
struct F16Columns {
  template <int kVectors, class Each>
  static HWY_INLINE void for_each(const PanelPart& part, const Each& each) {
    const auto* HWY_RESTRICT at =
        reinterpret_cast<const uint16_t*>(part.numbers) + part.from * part.width + part.col;
    for (int64_t l = part.from; l < part.to; ++l, at += part.width) {
      Vector columns[kVectors];
      for (int v = 0; v < kVectors; ++v) columns[v] = F16ToF32(hn::LoadU(U16(), at + v * lanes()));
      each(l, columns);
    }
  }
};

// The lowest four bits of each word, minus 8, times the scale. q · scale has at most 4 + 11 bits,
// so every way to compute it gives the same float.
HWY_INLINE Vector Int4ToF32(hn::Vec<U32> words, Vector scale) {
#if HWY_TARGET == HWY_AVX3
  // The instruction looks at no more than the four bits.
  HWY_ALIGN static constexpr float kNumbers[16] = {-8, -7, -6, -5, -4, -3, -2, -1,
                                                   0,  1,  2,  3,  4,  5,  6,  7};
  const Vector numbers = hn::Load(Floats(), kNumbers);
  return hn::Mul(Vector{_mm512_permutexvar_ps(words.raw, numbers.raw)}, scale);
#else
  const I32 di;
  const auto q = hn::BitCast(di, hn::And(words, hn::Set(U32(), 15u)));
  return hn::Mul(hn::ConvertTo(Floats(), hn::Sub(q, hn::Set(di, 8))), scale);
#endif
}

struct Int4Columns {
  template <int kVectors, class Each>
  static HWY_INLINE void for_each(const PanelPart& part, const Each& each) {
    constexpr int64_t kWordInputs = 8;
    for (int64_t group = part.from; group < part.to; group += kInt4Group) {
      const auto* HWY_RESTRICT scales_at = reinterpret_cast<const uint16_t*>(part.scales) +
                                           group / kInt4Group * part.width + part.col;
      Vector scales[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        scales[v] = F16ToF32(hn::LoadU(U16(), scales_at + v * lanes()));
      }
      const int64_t end = std::min(group + kInt4Group, part.to);
      for (int64_t word = group; word < end; word += kWordInputs) {
        const auto* HWY_RESTRICT at = reinterpret_cast<const uint32_t*>(part.numbers) +
                                      word / kWordInputs * part.width + part.col;
        hn::Vec<U32> words[kVectors];
        for (int v = 0; v < kVectors; ++v) words[v] = hn::LoadU(U32(), at + v * lanes());
        const auto step = [&](int64_t l) HWY_ATTR {
          Vector columns[kVectors];
          for (int v = 0; v < kVectors; ++v) {
            columns[v] = Int4ToF32(words[v], scales[v]);
            words[v] = hn::ShiftRight<4>(words[v]);
          }
          each(l, columns);
        };
        if (end - word >= kWordInputs) {
          for (int64_t l = 0; l < kWordInputs; ++l) step(word + l);
        } else {
          for (int64_t l = word; l < end; ++l) step(l);
        }
      }
    }
  }
};

// ---- few rows: floats in registers --------------------------------------------------------------

template <class Columns, int kRows, int kVectors>
HWY_INLINE void few_rows_of_columns(const PackedProduct& p, const PanelPart& part, int64_t first) {
  const Floats d;
  Vector sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = p.x + r * p.x_row;
  Columns::template for_each<kVectors>(
      part, [&](int64_t l, const Vector(&columns)[kVectors]) HWY_ATTR {
        for (int r = 0; r < kRows; ++r) {
          const Vector element = hn::Set(d, x[r][l]);
          for (int v = 0; v < kVectors; ++v) {
            sums[r][v] = hn::MulAdd(element, columns[v], sums[r][v]);
          }
        }
      });
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t col = first + part.col + v * lanes(), left = p.w.n - col;
      float* y = p.y + r * p.y_row + col;
      if (left >= lanes()) {
        hn::StoreU(sums[r][v], d, y);
      } else if (left > 0) {
        StoreFirst(sums[r][v], d, static_cast<size_t>(left), y);
      }
    }
  }
}

template <class Columns, int kRows>
HWY_NOINLINE void few_rows_of_panel(const PackedProduct& p, PanelPart part, int64_t first) {
  // As many vectors side by side as there are registers for their sums; their sums are chains, and
  // several must be under way.
  constexpr int kSums = kRegisters == 32 ? 12 : 8;
  constexpr int kPanelVectors = kPanelCols * sizeof(float) / HWY_MAX_BYTES;
  constexpr int kMost = kSums / kRows < kPanelVectors ? kSums / kRows : kPanelVectors;
  constexpr int kWide = kMost >= 6 ? 6 : kMost >= 3 ? 3 : 2;  // a divisor of a panel's vectors
  for (; part.col + kWide * lanes() <= part.width; part.col += kWide * lanes()) {
    few_rows_of_columns<Columns, kRows, kWide>(p, part, first);
  }
  for (; part.col < part.width; part.col += lanes()) {
    few_rows_of_columns<Columns, kRows, 1>(p, part, first);
  }
}

PanelPart panel_at(const PackedWeight& w, const PackedLayout& layout, int64_t first) {
  return {.numbers = w.memory + layout.panel_offset(first),
          .scales = w.memory + layout.scales_offset() +
                    first * layout.groups * static_cast<int64_t>(sizeof(uint16_t)),
          .width = layout.width(first),
          .col = 0,
          .from = 0,
          .to = w.k};
}

template <class Columns>
void multiply_in_registers(ThreadPool& pool, const PackedProduct& p, const PackedLayout& layout) {
  const int64_t panels = ceil_div(p.w.n, kPanelCols);
  const int64_t grain = ceil_div(kPackedShareWork, p.w.k * kPanelCols);
  pool.parallel_for(panels, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * kPanelCols;
      const PanelPart part = panel_at(p.w, layout, first);
      static_assert(kRowsInRegisters == 4);
      switch (p.m) {
        case 1:
          few_rows_of_panel<Columns, 1>(p, part, first);
          break;
        case 2:
          few_rows_of_panel<Columns, 2>(p, part, first);
          break;
        case 3:
          few_rows_of_panel<Columns, 3>(p, part, first);
          break;
        default:
          few_rows_of_panel<Columns, 4>(p, part, first);
      }
    }
  });
}

// ---- more rows: floats in cache -----------------------------------------------------------------

// A part of a panel as floats [steps, width], as row_tile-inl.h takes them.
template <class Columns, int kVectors>
HWY_NOINLINE void write_floats(const PanelPart& part, float* HWY_RESTRICT to) {
  const Floats d;
  Columns::template for_each<kVectors>(part,
                                       [&](int64_t, const Vector(&columns)[kVectors]) HWY_ATTR {
                                         for (int v = 0; v < kVectors; ++v)
                                           hn::Store(columns[v], d, to + v * lanes());
                                         to += kVectors * lanes();
                                       });
}

// Rows [begin, end) of x times the panel that begins with column `first`.
template <class Columns>
void multiply_in_cache(const PackedProduct& p, const PackedLayout& layout, int64_t first,
                       int64_t begin, int64_t end, float* floats) {
  const int64_t depth = std::min(kFloatDepth, p.w.k);
  PanelPart part = panel_at(p.w, layout, first);
  for (; part.col < std::min(part.width, p.w.n - first); part.col += panel_cols()) {
    const int64_t vectors = std::min<int64_t>(kTileVectors, (part.width - part.col) / lanes());
    for (int64_t from = 0; from < p.w.k; from += depth) {
      part.from = from, part.to = std::min(from + depth, p.w.k);
      const int64_t cols =
          std::min(vectors * lanes(), p.w.n - first - part.col);  // that y has room for
      // The tiles find as many vectors in a step as their columns need.
      switch (ceil_div(cols, lanes())) {
        case 1:
          write_floats<Columns, 1>(part, floats);
          break;
        case 2:
          write_floats<Columns, 2>(part, floats);
          break;
        default:
          write_floats<Columns, kTileVectors>(part, floats);
      }
      multiply_panel({.x = p.x + begin * p.x_row + from,
                      .x_row = p.x_row,
                      .panel = floats,
                      .depth = part.to - from,
                      .y = p.y + begin * p.y_row + first + part.col,
                      .y_row = p.y_row,
                      .cols = cols,
                      .continues = from > 0},
                     end - begin);
    }
  }
}

template <class Columns>
void multiply_by_floats(ThreadPool& pool, const PackedProduct& p, const PackedLayout& layout) {
  const int64_t panels = ceil_div(p.w.n, kPanelCols), blocks = ceil_div(p.m, kFloatBlockRows);
  const int64_t items = panels * blocks;
  const int64_t shares = std::min({static_cast<int64_t>(pool.threads()), items,
                                   ceil_div(p.m * p.w.n * p.w.k, kPackedShareWork)});
  pool.parallel_for(shares, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t share = begin; share < end; ++share) {
      float* floats = p.scratch + share * kFloatDepth * kPanelCols;
      for (int64_t i = items * share / shares; i < items * (share + 1) / shares; ++i) {
        const int64_t row = i / panels * kFloatBlockRows, first = i % panels * kPanelCols;
        multiply_in_cache<Columns>(p, layout, first, row, std::min(row + kFloatBlockRows, p.m),
                                   floats);
      }
    }
  });
}

template <class Columns>
void multiply_columns(ThreadPool& pool, const PackedProduct& p) {
  const PackedLayout layout(p.w.type, p.w.n, p.w.k);
  if (p.m <= kRowsInRegisters) {
    multiply_in_registers<Columns>(pool, p, layout);
  } else {
    multiply_by_floats<Columns>(pool, p, layout);
  }
}

void f16_product_kernel(ThreadPool& pool, const PackedProduct& p) {
  multiply_columns<F16Columns>(pool, p);
}
void int4_product_kernel(ThreadPool& pool, const PackedProduct& p) {
  multiply_columns<Int4Columns>(pool, p);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(f16_product_kernel);
HWY_EXPORT(int4_product_kernel);

void packed_product(ThreadPool& pool, const PackedProduct& p) {
  HEED_CHECK(p.m >= 0 && p.w.n >= 0 && p.w.k >= 0, "packed_product: a negative size");
  HEED_CHECK(p.x_row >= p.w.k && p.y_row >= p.w.n, "packed_product: rows that overlap");
  if (p.m == 0 || p.w.n == 0) return;
  if (p.w.k == 0) {  // an empty sum
    for (int64_t i = 0; i < p.m; ++i) std::fill_n(p.y + i * p.y_row, p.w.n, 0.0f);
    return;
  }
  switch (p.w.type) {
    case WeightType::f16:
      return HWY_DYNAMIC_DISPATCH(f16_product_kernel)(pool, p);
    case WeightType::int4:
      return HWY_DYNAMIC_DISPATCH(int4_product_kernel)(pool, p);
    case WeightType::int8:
      return int8_product(pool, p);
    case WeightType::f32:
      break;
  }
  HEED_CHECK(false, "packed_product: a weight of floats is not packed");
}

int64_t packed_product_scratch_floats(int64_t m, const PackedWeight& w, int threads) {
  if (w.type == WeightType::int8) return int8_product_scratch_floats(m, w.k);
  if (m <= kRowsInRegisters || w.n == 0 || w.k == 0) return 0;
  return kFloatDepth * kPanelCols * threads;
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
