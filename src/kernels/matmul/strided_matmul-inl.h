// A register-tiled matmul of small matrices that stay in cache, for attention's backward.
//
//   C [m, n] (+)= A [m, k] · B [k, n]
//
// A is read element by element with any two strides (so also transposed), B and C by rows. Each
// element of C is one chain of fused multiply-adds over K in order, whatever M and N are, so that
// attention is batch-invariant.

// Per-target include guard, as Highway's own -inl.h files have it.
#if defined(HEED_KERNELS_STRIDED_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_STRIDED_MATMUL_INL_H_
#undef HEED_KERNELS_STRIDED_MATMUL_INL_H_
#else
#define HEED_KERNELS_STRIDED_MATMUL_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/simd/simd_types-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows × vectors of C held in registers. AVX-512 and NEON have 32 registers: 6 × 4 sums and the
// operands. AVX2 and SSE have 16: 6 × 2.
inline constexpr int kStridedTileRows = 6;
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kStridedTileVectors = 4;
#else
inline constexpr int kStridedTileVectors = 2;
#endif

struct StridedMatmul {
  int64_t m, n, k;
  const float* a;
  int64_t a_row, a_col;  // A(i, l) = a[i * a_row + l * a_col]
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  bool accumulate;
};

// One register tile: kRows rows from i, kVectors vectors from column j; kMasked: the last vector
// has only `tail` columns.
template <int kRows, int kVectors, bool kMasked, class D>
HWY_INLINE void tile(D d, const StridedMatmul& t, int64_t i, int64_t j, size_t tail) {
  using V = hn::Vec<D>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mask = hn::FirstN(d, tail);
  V sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT a = t.a + i * t.a_row;
  const float* HWY_RESTRICT b = t.b + j;
  for (int64_t l = 0; l < t.k; ++l, a += t.a_col, b += t.b_row) {
    V columns[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = kMasked && v == kVectors - 1 ? hn::MaskedLoad(mask, d, b + v * lanes)
                                                : hn::LoadU(d, b + v * lanes);
    }
    for (int r = 0; r < kRows; ++r) {
      const V element = hn::Set(d, a[r * t.a_row]);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(element, columns[v], sums[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float* HWY_RESTRICT c = t.c + (i + r) * t.c_row + j;
    for (int v = 0; v < kVectors; ++v) {
      float* p = c + v * lanes;
      V sum = sums[r][v];
      if (kMasked && v == kVectors - 1) {
        if (t.accumulate) sum = hn::Add(hn::MaskedLoad(mask, d, p), sum);
        hn::BlendedStore(sum, mask, d, p);
      } else {
        if (t.accumulate) sum = hn::Add(hn::LoadU(d, p), sum);
        hn::StoreU(sum, d, p);
      }
    }
  }
}

// All columns of kRows rows from i.
template <int kRows, class D>
HWY_INLINE void tile_rows(D d, const StridedMatmul& t, int64_t i) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + kStridedTileVectors * lanes <= t.n; j += kStridedTileVectors * lanes) {
    tile<kRows, kStridedTileVectors, false>(d, t, i, j, 0);
  }
  if (kStridedTileVectors > 2 && j + 2 * lanes <= t.n) {
    tile<kRows, 2, false>(d, t, i, j, 0);
    j += 2 * lanes;
  }
  for (; j + lanes <= t.n; j += lanes) tile<kRows, 1, false>(d, t, i, j, 0);
  if (j < t.n) tile<kRows, 1, true>(d, t, i, j, static_cast<size_t>(t.n - j));
}

inline HWY_NOINLINE void strided_matmul(const StridedMatmul& t) {
  const FloatTag d;
  int64_t i = 0;
  for (; i + kStridedTileRows <= t.m; i += kStridedTileRows) tile_rows<kStridedTileRows>(d, t, i);
  for (; i + 2 <= t.m; i += 2) tile_rows<2>(d, t, i);
  if (i < t.m) tile_rows<1>(d, t, i);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
