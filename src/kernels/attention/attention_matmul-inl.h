// The two matmuls of attention's forward: scores = Q Kᵀ and sums += P V, both over blocks of kKvBlock
// positions, the layout of the KV cache (kv_blocks.h).
//
// Each score is one chain of fused multiply-adds over head_dim in order, each sum of values one over
// the keys of a tile, for any number of rows, columns and keys: a row's bits do not depend on the
// other rows. Masked keys may be skipped, as their probability is 0.

// Per-target include guard, as Highway's own -inl.h files have it.
#if defined(HEED_KERNELS_ATTENTION_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_MATMUL_INL_H_
#undef HEED_KERNELS_ATTENTION_MATMUL_INL_H_
#else
#define HEED_KERNELS_ATTENTION_MATMUL_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/attention/attention_rows-inl.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Rows × vectors of sums in registers. AVX-512 and NEON have 32 registers: 6 × 4 sums and the
// operands; 4 vectors of 16 are a head of 64. AVX2 and SSE have 16: 6 × 2.
constexpr int kAttentionTileRows = 6;
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr int kAttentionTileVectors = 4;
#else
constexpr int kAttentionTileVectors = 2;
#endif

// Columns of scores that are computed for all rows before the next ones: their keys (16 KiB for heads
// of 64) stay in L1. A single row cannot reuse a key and takes twice as many, for enough independent
// chains.
template <int kRows>
constexpr int kScoreVectors = kRows == 1 ? 2 * kAttentionTileVectors : kAttentionTileVectors;

HWY_INLINE int64_t score_panel() {
  return kAttentionTileVectors * static_cast<int64_t>(hn::Lanes(FloatTag()));
}

// scores [rows, columns] = Q Kᵀ, unscaled.
struct ScoreMatmul {
  const float* q;  // [rows, head_dim]
  int64_t head_dim;
  const float* const* keys;  // of each block of the tile: [head_dim, kKvBlock]
  float* scores;             // [rows, kKeyTile]
};

template <int kRows, int kVectors>
HWY_INLINE void score_vectors(const ScoreMatmul& p, int64_t row, int64_t column) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* HWY_RESTRICT keys[kVectors];
  FloatVec sums[kRows][kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = column + v * lanes;
    keys[v] = p.keys[at / kKvBlock] + at % kKvBlock;
    for (int r = 0; r < kRows; ++r) sums[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT q = p.q + row * p.head_dim;
  for (int64_t l = 0; l < p.head_dim; ++l) {
    FloatVec columns[kVectors];
    for (int v = 0; v < kVectors; ++v) columns[v] = hn::LoadU(d, keys[v] + l * kKvBlock);
    for (int r = 0; r < kRows; ++r) {
      const FloatVec element = hn::Set(d, q[r * p.head_dim + l]);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(element, columns[v], sums[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[r][v], d, p.scores + (row + r) * kKeyTile + column + v * lanes);
    }
  }
}

// Columns [begin, end) of kRows rows.
template <int kRows>
HWY_INLINE void score_rows(const ScoreMatmul& p, int64_t row, int64_t begin, int64_t end) {
  constexpr int kMost = kScoreVectors<kRows>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  int64_t at = begin;
  for (; at + kMost * lanes <= end; at += kMost * lanes) score_vectors<kRows, kMost>(p, row, at);
  if constexpr (kMost > 4) {
    if (at + 4 * lanes <= end) score_vectors<kRows, 4>(p, row, at), at += 4 * lanes;
  }
  if constexpr (kMost > 2) {
    if (at + 2 * lanes <= end) score_vectors<kRows, 2>(p, row, at), at += 2 * lanes;
  }
  for (; at < end; at += lanes) score_vectors<kRows, 1>(p, row, at);
}

// Rows [row, row + rows).
HWY_NOINLINE void score_matmul(const ScoreMatmul& p, int64_t row, int64_t rows, int64_t begin,
                               int64_t end) {
  const int64_t last = row + rows;
  for (; row + kAttentionTileRows <= last; row += kAttentionTileRows)
    score_rows<kAttentionTileRows>(p, row, begin, end);
  for (; row + 2 <= last; row += 2) score_rows<2>(p, row, begin, end);
  if (row < last) score_rows<1>(p, row, begin, end);
}

// sums [rows, head_dim] += P V.
struct ValueMatmul {
  const float* scores;         // [rows, kKeyTile]
  const float* const* values;  // of each block of the tile: [kKvBlock, head_dim] …
  int64_t stride;              // … whose rows are so far apart
  int64_t head_dim;
  float* sums;
};

// kVectors vectors of values from column j; kPart: the last has only `tail` columns.
template <int kRows, int kVectors, bool kPart>
HWY_INLINE void value_vectors(const ValueMatmul& p, int64_t row, int64_t begin, int64_t end,
                              int64_t j, size_t tail) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  FloatVec sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT scores = p.scores + row * kKeyTile;
  for (int64_t key = begin; key < end; key += kKvBlock) {
    const float* HWY_RESTRICT values = p.values[key / kKvBlock] + j;
    const int64_t block_end = std::min(key + kKvBlock, end);
    for (int64_t l = key; l < block_end; ++l, values += p.stride) {
      FloatVec columns[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        columns[v] = kPart && v == kVectors - 1 ? LoadFirst(d, tail, values + v * lanes)
                                                : hn::LoadU(d, values + v * lanes);
      }
      for (int r = 0; r < kRows; ++r) {
        const FloatVec element = hn::Set(d, scores[r * kKeyTile + l]);
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = hn::MulAdd(element, columns[v], sums[r][v]);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      float* to = p.sums + (row + r) * p.head_dim + j + v * lanes;
      if (kPart && v == kVectors - 1) {
        StoreFirst(hn::Add(LoadFirst(d, tail, to), sums[r][v]), d, tail, to);
      } else {
        hn::StoreU(hn::Add(hn::LoadU(d, to), sums[r][v]), d, to);
      }
    }
  }
}

// Keys [begin, end) of the tile, `begin` the first of a block.
template <int kRows>
HWY_INLINE void value_rows(const ValueMatmul& p, int64_t row, int64_t begin, int64_t end) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag())), n = p.head_dim;
  int64_t j = 0;
  for (; j + kAttentionTileVectors * lanes <= n; j += kAttentionTileVectors * lanes) {
    value_vectors<kRows, kAttentionTileVectors, false>(p, row, begin, end, j, 0);
  }
  if (kAttentionTileVectors > 2 && j + 2 * lanes <= n) {
    value_vectors<kRows, 2, false>(p, row, begin, end, j, 0), j += 2 * lanes;
  }
  for (; j + lanes <= n; j += lanes) value_vectors<kRows, 1, false>(p, row, begin, end, j, 0);
  if (j < n) value_vectors<kRows, 1, true>(p, row, begin, end, j, static_cast<size_t>(n - j));
}

HWY_NOINLINE void value_matmul(const ValueMatmul& p, int64_t row, int64_t rows, int64_t begin,
                               int64_t end) {
  const int64_t last = row + rows;
  for (; row + kAttentionTileRows <= last; row += kAttentionTileRows)
    value_rows<kAttentionTileRows>(p, row, begin, end);
  for (; row + 2 <= last; row += 2) value_rows<2>(p, row, begin, end);
  if (row < last) value_rows<1>(p, row, begin, end);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
