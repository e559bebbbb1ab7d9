#include "kernels/matmul/packed_matmul.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "kernels/matmul/work_split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/packed_matmul.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/matmul/epilogue-inl.h"
#include "kernels/matmul/matmul_tile-inl.h"
#include "kernels/simd/f16-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

#ifndef HEED_KERNELS_PACKED_MATMUL_ONCE_
#define HEED_KERNELS_PACKED_MATMUL_ONCE_
namespace heed::kernels {

// M rows, N outputs, K inputs. None of these sizes changes a result.

// Up to this many rows (decode), with 16 or 32 registers: dequantize in registers, one pass over
// the weight. More rows (prefill): dequantize one L2-sized block and run the GEMM tile over all
// rows. f32 needs no block.
inline constexpr int kGemvRowsWith16Registers = 4, kGemvRowsWith32Registers = 8;
// Depth along K of a dequantized block, and its size.
inline constexpr int64_t kDequantizedDepth = 384;
inline constexpr int64_t kDequantizedFloats = kDequantizedDepth * kPanelCols;
// Rows that use a dequantized block before the next one is made: x must stay in L2.
inline constexpr int64_t kGemmBlockRows = 256;
// Prefetch distance of the GEMV path: too much arithmetic lies between two loads for the hardware
// prefetcher.
inline constexpr int64_t kPrefetchBytes = 4608;

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Some columns of a panel, and steps [from, to) of them.
struct PanelPart {
  const std::byte* numbers;  // of the panel
  int64_t width;             // of the panel
  int64_t col, end;          // columns within the panel
  int64_t from, to;
};

template <class T>
HWY_INLINE void prefetch_ahead(const T* from) {
  hwy::Prefetch(reinterpret_cast<const std::byte*>(from) + kPrefetchBytes);
}

// Calls each(l, columns) for every step, columns being kVectors vectors of floats.
struct F32Columns {
  static constexpr int64_t kBytes = 4;  // of a number
  static HWY_INLINE const float* at(const PanelPart& part) {
    return reinterpret_cast<const float*>(part.numbers) + part.from * part.width + part.col;
  }
  template <int kVectors, class Each>
  static HWY_INLINE void for_each(const PanelPart& part, const Each& each) {
    const float* HWY_RESTRICT from = at(part);
    for (int64_t l = part.from; l < part.to; ++l, from += part.width) {
      FloatVec columns[kVectors];
      for (int v = 0; v < kVectors; ++v) prefetch_ahead(from + v * lanes());
      for (int v = 0; v < kVectors; ++v) columns[v] = hn::Load(FloatTag(), from + v * lanes());
      each(l, columns);
    }
  }
};

struct F16 {
  static HWY_INLINE FloatVec to_f32(hn::Vec<Uint16Tag> x) { return F16ToF32(x); }
};
struct Bf16 {
  static HWY_INLINE FloatVec to_f32(hn::Vec<Uint16Tag> x) {
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(Uint32Tag(), x)));
  }
};

template <class Format>
struct Columns16 {
  static constexpr int64_t kBytes = 2;
  template <int kVectors, class Each>
  static HWY_INLINE void for_each(const PanelPart& part, const Each& each) {
    const auto* HWY_RESTRICT at =
        reinterpret_cast<const uint16_t*>(part.numbers) + part.from * part.width + part.col;
    for (int64_t l = part.from; l < part.to; ++l, at += part.width) {
      FloatVec columns[kVectors];
      for (int v = 0; v < kVectors; ++v) prefetch_ahead(at + v * lanes());
      for (int v = 0; v < kVectors; ++v)
        columns[v] = Format::to_f32(hn::LoadU(Uint16Tag(), at + v * lanes()));
      each(l, columns);
    }
  }
};

// ---- GEMV: dequantize in registers ---------------------------------------------------------------

constexpr int kGemvRows = kRegisters == 32 ? kGemvRowsWith32Registers : kGemvRowsWith16Registers;

template <class Columns, int kRows, int kVectors>
HWY_INLINE void gemv_columns(const PackedMatmul& p, const PanelPart& part, int64_t first) {
  const FloatTag d;
  FloatVec sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = p.x + r * p.x_row;
  Columns::template for_each<kVectors>(
      part, [&](int64_t l, const FloatVec(&columns)[kVectors]) HWY_ATTR {
        for (int r = 0; r < kRows; ++r) {
          const FloatVec element = hn::Set(d, x[r][l]);
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
HWY_NOINLINE void gemv_panel(const PackedMatmul& p, PanelPart part, int64_t first) {
  // As many vectors side by side as there are registers for their sums: each sum is a chain of
  // FMAs, and several chains hide the latency.
  constexpr int kSums = kRegisters == 32 ? 24 : 8;
  constexpr int kPanelVectors = kPanelCols * sizeof(float) / HWY_MAX_BYTES;
  constexpr int kMost = kSums / kRows < kPanelVectors ? kSums / kRows : kPanelVectors;
  constexpr int kWide = kMost >= 6 ? 6 : kMost >= 3 ? 3 : 2;  // a divisor of a panel's vectors
  for (; part.col + kWide * lanes() <= part.end; part.col += kWide * lanes()) {
    gemv_columns<Columns, kRows, kWide>(p, part, first);
  }
  for (; part.col < part.end; part.col += lanes()) {
    gemv_columns<Columns, kRows, 1>(p, part, first);
  }
}

// Threads get whole units of kPanelUnit columns, so that all get about as many. The border between
// two threads may be within a panel.
int64_t units_of(const PackedWeight& w) { return ceil_div(w.n, kPanelUnit); }

// Calls each(part, first) for the part of each panel within units [begin, end); `first` is the
// first column of the panel.
template <class Each>
HWY_INLINE void for_each_panel(const PackedWeight& w, const PackedLayout& layout, int64_t begin,
                               int64_t end, const Each& each) {
  const int64_t end_col = std::min(end * kPanelUnit, layout.padded_n);
  for (int64_t col = begin * kPanelUnit; col < end_col;) {
    const int64_t first = col / kPanelCols * kPanelCols, width = layout.width(first);
    const int64_t next = std::min(first + width, end_col);
    each(PanelPart{.numbers = w.memory + layout.panel_offset(first),
                   .width = width,
                   .col = col - first,
                   .end = next - first,
                   .from = 0,
                   .to = w.k},
         first);
    col = next;
  }
}

// 1 … kMost rows.
template <class Columns, int kMost = kGemvRows>
HWY_INLINE void gemv_rows(const PackedMatmul& p, const PanelPart& part, int64_t first) {
  if constexpr (kMost > 1) {
    if (p.m < kMost) return gemv_rows<Columns, kMost - 1>(p, part, first);
  }
  gemv_panel<Columns, kMost>(p, part, first);
}

template <class Columns>
void gemv_dequantize_in_registers(ThreadPool& pool, const PackedMatmul& p,
                                  const PackedLayout& layout) {
  const int64_t unit_work = p.m * p.w.k * kPanelUnit;
  const int64_t grain = grain_units(unit_work, p.w.k * kPanelUnit * Columns::kBytes);
  pool.parallel_for(units_of(p.w), grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_each_panel(p.w, layout, begin, end, [&](const PanelPart& part, int64_t first) HWY_ATTR {
      gemv_rows<Columns>(p, part, first);
    });
    const int64_t col = begin * kPanelUnit, end_col = std::min(end * kPanelUnit, p.w.n);
    apply_epilogue(p, {.row = 0, .rows = p.m, .col = col, .cols = end_col - col});
  });
}

// ---- GEMM: dequantize in cache -------------------------------------------------------------------

template <class Columns, int kVectors>
HWY_NOINLINE void dequantize_to(const PanelPart& part, float* HWY_RESTRICT to) {
  const FloatTag d;
  Columns::template for_each<kVectors>(part,
                                       [&](int64_t, const FloatVec(&columns)[kVectors]) HWY_ATTR {
                                         for (int v = 0; v < kVectors; ++v)
                                           hn::Store(columns[v], d, to + v * lanes());
                                         to += kVectors * lanes();
                                       });
}

// A part of a panel in f32, `step` floats from one step along K to the next.
struct DequantizedPanel {
  const float* floats;
  int64_t step;
};

// f32 weights are used in place; others are dequantized to `room`.
template <class Columns>
HWY_INLINE DequantizedPanel dequantized_panel(const PanelPart& part, int64_t vectors, float* room) {
  if constexpr (std::is_same_v<Columns, F32Columns>) {
    return {F32Columns::at(part), part.width};
  } else {
    switch (vectors) {
      case 1:
        dequantize_to<Columns, 1>(part, room);
        break;
      case 2:
        dequantize_to<Columns, 2>(part, room);
        break;
      default:
        dequantize_to<Columns, kTileVectors>(part, room);
    }
    return {room, vectors * lanes()};
  }
}

// Rows [begin, end) of x times a part of the panel that begins with column `first`.
template <class Columns>
void gemm_panel_in_cache(const PackedMatmul& p, PanelPart part, int64_t first, int64_t begin,
                         int64_t end, float* room) {
  // Blocks of one size: the tiles of a short one would not prefetch all of the next.
  const int64_t depth = ceil_div(even_part(p.w.k, kDequantizedDepth), kTileSteps) * kTileSteps;
  const int64_t end_col = std::min(part.end, p.w.n - first);
  // The next block follows this one in memory. Each tile prefetches its share of it; otherwise the
  // first tile of the next block would wait for memory.
  const int64_t step_bytes = part.width * Columns::kBytes;
  const int64_t share_bytes =
      prefetch_bytes_each(kTileSteps * step_bytes, ceil_div(end - begin, kTileRows));
  for (; part.col < end_col; part.col += panel_cols()) {
    const int64_t cols = std::min(panel_cols(), end_col - part.col);
    for (int64_t from = 0; from < p.w.k; from += depth) {
      part.from = from, part.to = std::min(from + depth, p.w.k);
      const DequantizedPanel panel =
          dequantized_panel<Columns>(part, ceil_div(cols, lanes()), room);
      multiply_panel({.x = p.x + begin * p.x_row + from,
                      .x_row = p.x_row,
                      .panel = panel.floats,
                      .panel_step = panel.step,
                      .depth = part.to - from,
                      .y = p.y + begin * p.y_row + first + part.col,
                      .y_row = p.y_row,
                      .cols = cols,
                      .continues = from > 0,
                      .prefetch = part.numbers + part.to * step_bytes,
                      .prefetch_bytes = share_bytes},
                     end - begin);
    }
    apply_epilogue(p, {.row = begin, .rows = end - begin, .col = first + part.col, .cols = cols});
  }
}

template <class Columns>
void gemm_dequantize_in_cache(ThreadPool& pool, const PackedMatmul& p, const PackedLayout& layout) {
  const int64_t units = units_of(p.w), block_rows = even_part(p.m, kGemmBlockRows);
  const int64_t blocks = ceil_div(p.m, block_rows);
  const int64_t items = units * blocks;
  const int64_t shares = std::min(
      {static_cast<int64_t>(pool.threads()), items, ceil_div(p.m * p.w.n * p.w.k, kGrainWork)});
  pool.parallel_for(shares, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t share = begin; share < end; ++share) {
      float* room = p.scratch + share * kDequantizedFloats;
      const int64_t last = items * (share + 1) / shares;
      for (int64_t i = items * share / shares, next = i; i < last; i = next) {
        const int64_t block = i / units;
        next = std::min(last, (block + 1) * units);
        const int64_t row = block * block_rows, row_end = std::min(row + block_rows, p.m);
        for_each_panel(p.w, layout, i - block * units, next - block * units,
                       [&](const PanelPart& part, int64_t first) HWY_ATTR {
                         gemm_panel_in_cache<Columns>(p, part, first, row, row_end, room);
                       });
      }
    }
  });
}

template <class Columns>
void matmul_columns(ThreadPool& pool, const PackedMatmul& p) {
  const PackedLayout layout(p.w.type, p.w.n, p.w.k);
  if (p.m <= kGemvRows) {
    gemv_dequantize_in_registers<Columns>(pool, p, layout);
  } else {
    gemm_dequantize_in_cache<Columns>(pool, p, layout);
  }
}

void f32_matmul_kernel(ThreadPool& pool, const PackedMatmul& p) {
  matmul_columns<F32Columns>(pool, p);
}
void f16_matmul_kernel(ThreadPool& pool, const PackedMatmul& p) {
  matmul_columns<Columns16<F16>>(pool, p);
}
void bf16_matmul_kernel(ThreadPool& pool, const PackedMatmul& p) {
  matmul_columns<Columns16<Bf16>>(pool, p);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(f32_matmul_kernel);
HWY_EXPORT(f16_matmul_kernel);
HWY_EXPORT(bf16_matmul_kernel);

void packed_matmul(ThreadPool& pool, const PackedMatmul& p) {
  HEED_CHECK(p.m >= 0 && p.w.n >= 0 && p.w.k >= 0, "packed_matmul: sizes must not be negative");
  HEED_CHECK(p.x_row >= p.w.k && p.y_row >= p.w.n,
             "packed_matmul: x_row must be at least K, y_row at least N");
  if (p.m == 0 || p.w.n == 0) return;
  HEED_CHECK(p.w.k > 0, "packed_matmul: K must be positive");
  weight_type(p.w.type).matmul(pool, p);
}

int64_t packed_matmul_scratch_floats(int64_t m, const PackedWeight& w, int threads) {
  return weight_type(w.type).scratch_floats(m, w, threads);
}

void f32_matmul(ThreadPool& pool, const PackedMatmul& p) {
  HWY_DYNAMIC_DISPATCH(f32_matmul_kernel)(pool, p);
}
int64_t f32_matmul_scratch_floats(int64_t, const PackedWeight&, int) { return 0; }

void f16_matmul(ThreadPool& pool, const PackedMatmul& p) {
  HWY_DYNAMIC_DISPATCH(f16_matmul_kernel)(pool, p);
}
void bf16_matmul(ThreadPool& pool, const PackedMatmul& p) {
  HWY_DYNAMIC_DISPATCH(bf16_matmul_kernel)(pool, p);
}
int64_t dequantizing_matmul_scratch_floats(int64_t m, const PackedWeight& w, int threads) {
  return m <= kGemvRowsWith16Registers || w.n == 0 ? 0 : kDequantizedFloats * threads;
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
