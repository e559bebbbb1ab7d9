// The register tile of f32 matmuls: rows of x times a packed panel of the weight, each element one
// chain of fused multiply-adds over K in order (matmul.h).

// Per-target include guard, as Highway's own -inl.h files have it.
#if defined(HEED_KERNELS_MATMUL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_MATMUL_TILE_INL_H_
#undef HEED_KERNELS_MATMUL_TILE_INL_H_
#else
#define HEED_KERNELS_MATMUL_TILE_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/matmul/work_split.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows × vectors of y held in registers. AVX-512 and NEON have 32 registers: 8 × 3 sums, three
// vectors of the weight and a broadcast element of x. AVX2 and SSE have 16: 6 × 2 sums.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kRegisters = 32;
inline constexpr int kTileRows = 8;
inline constexpr int kTileVectors = 3;
#else
inline constexpr int kRegisters = 16;
inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = 2;
#endif

inline constexpr int64_t kTileSteps = 4;  // along K in one iteration

HWY_INLINE int64_t panel_cols() { return kTileVectors * lanes(); }

// Rows of x times a panel.
struct Tile {
  const float* x;  // [rows, depth]
  int64_t x_row;
  const float* panel;  // [depth, vectors · lanes], its steps panel_step floats apart
  int64_t panel_step;
  int64_t depth;
  float* y;
  int64_t y_row;
  int64_t cols;    // of y; the last vector may be partial
  bool continues;  // the sums so far are in y
  // Memory to prefetch: prefetch_bytes every kTileSteps steps.
  const std::byte* prefetch = nullptr;
  int64_t prefetch_bytes = 0;
};

// kRows rows, kVectors vectors; kPart: the last vector is partial.
template <int kRows, int kVectors, bool kPart>
HWY_INLINE void multiply_tile(const Tile& t) {
  const FloatTag d;
  const int64_t step = t.panel_step;
  const size_t tail = static_cast<size_t>(t.cols - (kVectors - 1) * lanes());
  FloatVec sums[kRows][kVectors];
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
  const float* HWY_RESTRICT
      x[kRows];  // or the compiler computes addresses row by row, step by step
  for (int r = 0; r < kRows; ++r) x[r] = t.x + r * t.x_row;
  const float* HWY_RESTRICT panel = t.panel;
  const auto add_step = [&](int64_t l, int64_t i) HWY_ATTR {
    FloatVec columns[kVectors];
    for (int v = 0; v < kVectors; ++v) columns[v] = hn::Load(d, panel + i * step + v * lanes());
    for (int r = 0; r < kRows; ++r) {
      const FloatVec element = hn::Set(d, x[r][l + i]);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(element, columns[v], sums[r][v]);
      }
    }
  };
  const std::byte* prefetch = t.prefetch;
  int64_t l = 0;
  static_assert(kTileSteps == 4);
  for (; l + kTileSteps <= t.depth; l += kTileSteps, panel += kTileSteps * step) {
    prefetch_l2(prefetch, t.prefetch_bytes);
    prefetch += t.prefetch_bytes;
    add_step(l, 0);
    add_step(l, 1);
    add_step(l, 2);
    add_step(l, 3);
  }
  for (; l < t.depth; ++l, panel += step) add_step(l, 0);
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

// A tile of 1 … kMost rows.
template <int kMost, int kVectors, bool kPart>
HWY_INLINE void multiply_tile_of(const Tile& t, int64_t rows) {
  if constexpr (kMost > 1) {
    if (rows < kMost) return multiply_tile_of<kMost - 1, kVectors, kPart>(t, rows);
  }
  multiply_tile<kMost, kVectors, kPart>(t);
}

// As few tiles as possible, all of about the same size: a tile of one row has too few independent
// sums, so that 8 + 1 rows would take a third longer than 5 + 4.
template <int kVectors, bool kPart>
HWY_NOINLINE void multiply_rows(Tile t, int64_t rows) {
  for (int64_t tiles = ceil_div(rows, kTileRows); tiles > 0; --tiles) {
    const int64_t some = ceil_div(rows, tiles);
    multiply_tile_of<kTileRows, kVectors, kPart>(t, some);
    rows -= some;
    t.x += some * t.x_row;
    t.y += some * t.y_row;
    if (t.prefetch) t.prefetch += t.depth / kTileSteps * t.prefetch_bytes;
  }
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

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_MATMUL_TILE_INL_H_
