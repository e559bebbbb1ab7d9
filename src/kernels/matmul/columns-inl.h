// Transposed reads: columns of a row-major matrix, one lane for each row.

// Per-target include guard, as Highway's own -inl.h files have it.
#if defined(HEED_KERNELS_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_COLUMNS_INL_H_
#undef HEED_KERNELS_COLUMNS_INL_H_
#else
#define HEED_KERNELS_COLUMNS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/matmul/matmul_tile-inl.h"
#include "kernels/matmul/work_split.h"
#include "kernels/simd/simd_types-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// A vector of 128-bit blocks, block b from p + 4 · b · row.
HWY_INLINE FloatVec load_blocks(const float* HWY_RESTRICT p, int64_t row) {
  const FloatTag d;
  if constexpr (HWY_MAX_BYTES == 16) {
    return hn::LoadU(d, p);
  } else if constexpr (HWY_MAX_BYTES == 32) {
    const hn::Half<FloatTag> half;
    return hn::Combine(d, hn::LoadU(half, p + 4 * row), hn::LoadU(half, p));
  } else {
    FloatVec v = hn::LoadDup128(d, p);
    v = hn::IfThenElse(hn::FirstN(d, 4), v, hn::LoadDup128(d, p + 4 * row));
    v = hn::IfThenElse(hn::FirstN(d, 8), v, hn::LoadDup128(d, p + 8 * row));
    return hn::IfThenElse(hn::FirstN(d, 12), v, hn::LoadDup128(d, p + 12 * row));
  }
}

// Four columns of as many rows as a vector has lanes: columns[c] has w[r * row + c] in lane r.
// Loading puts rows 4b … 4b + 3 into block b, so what is left is a 4 × 4 transpose in each block.
HWY_INLINE void load_columns(const float* HWY_RESTRICT w, int64_t row, FloatVec (&columns)[4]) {
  const FloatTag d;
  const hn::Repartition<double, FloatTag> pairs;
  const FloatVec row0 = load_blocks(w, row), row1 = load_blocks(w + row, row);
  const FloatVec row2 = load_blocks(w + 2 * row, row), row3 = load_blocks(w + 3 * row, row);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
  columns[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  columns[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  columns[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  columns[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}

// A cache line is used by four calls of load_columns: each prefetches a quarter of the next vector of
// rows.
HWY_INLINE void prefetch_next_rows(const float* w, int64_t row, int64_t l) {
  const int64_t quarter = lanes() / 4;
  const float* next = w + (lanes() + l / 4 % 4 * quarter) * row + l;
  for (int64_t r = 0; r < quarter; ++r) hwy::Prefetch(next + r * row);
}
#endif  // HWY_TARGET != HWY_SCALAR

// One column of `rows` rows, at most a vector of them; zeros beyond.
HWY_INLINE FloatVec load_column(const float* w, int64_t row, int64_t rows) {
  HWY_ALIGN float column[HWY_MAX_BYTES / sizeof(float)] = {};
  for (int64_t r = 0; r < rows; ++r) column[r] = w[r * row];
  return hn::Load(FloatTag(), column);
}

// At most a vector of rows of a matrix, such as outputs of a weight [out, in] or keys.
struct WeightRows {
  const float* w;
  int64_t row;
  int64_t rows;  // up to a vector of lanes
  int64_t k;
  bool prefetch;  // of the next vector of rows, which must exist
};

// Calls each(l, column) for the columns l = 0, 1, … k - 1, a lane for each row.
template <class Each>
HWY_INLINE void for_each_column(const WeightRows& from, const Each& each) {
  int64_t l = 0;
#if HWY_TARGET != HWY_SCALAR
  if (from.rows == lanes()) {
    for (; l + 4 <= from.k; l += 4) {
      if (from.prefetch) prefetch_next_rows(from.w, from.row, l);
      FloatVec columns[4];
      load_columns(from.w + l, from.row, columns);
      for (int c = 0; c < 4; ++c) each(l + c, columns[c]);
    }
  }
#endif
  for (; l < from.k; ++l) each(l, load_column(from.w + l, from.row, from.rows));
}

// Packs rows of a weight [out, in] into a panel [k, whole vectors of lanes] with zeros beyond the
// last. `left`: rows of the weight from the first one on, also beyond the panel.
HWY_INLINE void pack_columns(const WeightRows& from, int64_t left, float* HWY_RESTRICT panel) {
  const FloatTag d;
  const int64_t width = ceil_div(from.rows, lanes()) * lanes();
  for (int64_t j = 0; j < from.rows; j += lanes()) {
    const WeightRows rows{.w = from.w + j * from.row,
                          .row = from.row,
                          .rows = std::min(lanes(), from.rows - j),
                          .k = from.k,
                          .prefetch = from.prefetch && j + 2 * lanes() <= left};
    for_each_column(rows, [&](int64_t l, FloatVec column)
                              HWY_ATTR { hn::Store(column, d, panel + l * width + j); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_COLUMNS_INL_H_
