// Products of 4-bit integers: each group of a row of x is rounded to 16 bits, then eight steps
// along k at a time are multiplied and added up in 32 bits, and the groups' sums as floats.
//
// A word of the weight holds eight numbers of one column, q + 8, so that they are unsigned. What is
// too much in a group's sum, 8 Σ x, is the same for all columns.

// The 512-bit target with the dot product of bytes.
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/packed_product.h"
#include "kernels/parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int4_product.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/f16-inl.h"
#include "kernels/integer_product-inl.h"
#include "kernels/vector_loop-inl.h"

#ifndef HEED_KERNELS_INT4_PRODUCT_ONCE_
#define HEED_KERNELS_INT4_PRODUCT_ONCE_
namespace heed::kernels {

// The largest 16-bit number with 256 high + low, both of them signed bytes, also when negative.
inline constexpr float kInt4LargestX = 127 * 256 + 127;
inline constexpr int32_t kInt4Offset = 8;  // what the weight's numbers have too much
inline constexpr int64_t kInt4WordInputs = 8;
inline constexpr int64_t kInt4GroupWords = kInt4Group / kInt4WordInputs;

// A group of a row of x: what its sums must be multiplied by, and where they start.
struct Int4XGroup {
  float scale;
  int32_t start;
};

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- eight steps of one vector of columns -------------------------------------------------------
//
// A word of the weight is used in kParts parts: every kParts-th of its eight numbers, apart from
// each other as the instruction wants them. The numbers of x lie in the same order, so many for a
// part as kPartNumbers says. A group is summed up in kSums vectors.

#if HEED_DOT_OF_BYTES

// x = 256 high + low: the high bytes of a part's four numbers and the low ones make a word each.
inline constexpr int kParts = 2;
inline constexpr int kSums = 2;
inline constexpr uint32_t kPartMask = 0x0F0F0F0F;
HWY_ALIGN inline constexpr uint8_t kOrder[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                 2, 6, 10, 14, 3, 7, 11, 15};
#elif HEED_DOT_OF_PAIRS

inline constexpr int kParts = 4;
inline constexpr int kSums = 1;
inline constexpr uint32_t kPartMask = 0x000F000F;
HWY_ALIGN inline constexpr uint8_t kOrder[16] = {0, 1, 8,  9,  2, 3, 10, 11,
                                                 4, 5, 12, 13, 6, 7, 14, 15};
#else

inline constexpr int kParts = 8;
inline constexpr int kSums = 1;
inline constexpr uint32_t kPartMask = 0x0000000F;

#endif

inline constexpr int64_t kPartNumbers = kInt4WordInputs / kParts;

// Two numbers in each word.
HWY_INLINE Sums SetPair(const int16_t* x) {
  int32_t word;
  std::memcpy(&word, x, sizeof word);
  return hn::Set(Words(), word);
}

// Adds the products of a part of kVectors vectors with the numbers of x that belong to it.
template <int kVectors>
HWY_INLINE void AddPart(const Sums (&w)[kVectors], const int16_t* x,
                        Sums (&sums)[kVectors][kSums]) {
#if HEED_DOT_OF_BYTES
  const Sums low = SetPair(x), high = SetPair(x + 2);
  for (int v = 0; v < kVectors; ++v) {
    sums[v][0] = AddDotOfBytes(sums[v][0], w[v], low);
    sums[v][1] = AddDotOfBytes(sums[v][1], w[v], high);
  }
#elif HEED_DOT_OF_PAIRS
  const Sums pair = SetPair(x);
  for (int v = 0; v < kVectors; ++v) sums[v][0] = AddDotOfPairs(sums[v][0], w[v], pair);
#else
  const Sums number = hn::Set(Words(), static_cast<int32_t>(*x));
  for (int v = 0; v < kVectors; ++v) sums[v][0] = hn::Add(sums[v][0], hn::Mul(w[v], number));
#endif
}

HWY_INLINE Sums WholeSum(const Sums (&sums)[kSums]) {
  if constexpr (kSums == 2) {
    return hn::Add(sums[0], hn::ShiftLeft<8>(sums[kSums - 1]));
  } else {
    return sums[0];
  }
}

// ---- rounding x ---------------------------------------------------------------------------------

// Numbers of x, two vectors of them, in the order that AddPart() wants.
HWY_INLINE void store_numbers(Sums first, Sums second, int16_t* to) {
  const hn::Rebind<int16_t, Words> half;
#if HEED_DOT_OF_BYTES || HEED_DOT_OF_PAIRS
  const hn::Repartition<int16_t, Words> d;
  auto numbers = hn::Combine(d, hn::DemoteTo(half, second), hn::DemoteTo(half, first));
  // The upper byte becomes one more where the lower one counts as negative.
  const auto carry = hn::Set(d, 128);
  if (kSums == 2) numbers = hn::Xor(hn::Add(numbers, carry), carry);
  const auto order = hn::LoadDup128(hn::Repartition<uint8_t, Words>(), kOrder);
  hn::StoreU(hn::TableLookupBytes(numbers, hn::BitCast(d, order)), d, to);
#else
  hn::StoreU(hn::DemoteTo(half, first), half, to);
  hn::StoreU(hn::DemoteTo(half, second), half, to + word_lanes());
#endif
}

// x [kInt4Group]
HWY_INLINE Int4XGroup round_group(const float* HWY_RESTRICT x, int16_t* HWY_RESTRICT numbers) {
  const F32 d;
  const float largest = largest_magnitude(x, kInt4Group);
  if (!(largest >= kNothing) || !std::isfinite(largest)) {
    std::fill_n(numbers, kInt4Group, int16_t{0});
    return {std::isfinite(largest) ? 0 : std::numeric_limits<float>::quiet_NaN(), 0};
  }
  const auto inverse = hn::Set(d, kInt4LargestX / largest);
  const auto rounded = [&](int64_t i) HWY_ATTR {
    return hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse));
  };
  Sums sums = hn::Zero(Words());
  for (int64_t i = 0; i < kInt4Group; i += 2 * word_lanes()) {
    const Sums first = rounded(i), second = rounded(i + word_lanes());
    sums = hn::Add(sums, hn::Add(first, second));
    store_numbers(first, second, numbers + i);
  }
  return {largest / kInt4LargestX, -kInt4Offset * hn::GetLane(hn::SumOfLanes(Words(), sums))};
}

void round_row(const float* x, int64_t k, int16_t* numbers, Int4XGroup* groups) {
  for (; k >= kInt4Group; k -= kInt4Group, x += kInt4Group, numbers += kInt4Group) {
    *groups++ = round_group(x, numbers);
  }
  if (k == 0) return;
  float rest[kInt4Group] = {};
  std::copy_n(x, k, rest);
  *groups = round_group(rest, numbers);
}

// ---- register tiles -----------------------------------------------------------------------------

// With bytes, an element takes three registers: two sums and a total. 2 × 3 elements are a little
// faster than 4 × 3, whose totals go to memory, or 8 × 1, which load x for one vector only.
#if HEED_DOT_OF_BYTES
inline constexpr int kInt4Rows = 2;
inline constexpr int kInt4Vectors = 3;
#elif HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kInt4Rows = 4;
inline constexpr int kInt4Vectors = 3;
#else
inline constexpr int kInt4Rows = 4;
inline constexpr int kInt4Vectors = 2;
#endif

struct Int4Tile {
  const int16_t* x;            // [rows, groups · kInt4Group]
  const Int4XGroup* x_groups;  // [rows, groups]
  int64_t groups;
  const int32_t* w;  // the panel, from the tile's first column on
  const uint16_t* scales;
  int64_t width;  // of the panel
  float* y;
  int64_t y_row;
  int64_t cols;  // that y has room for
};

template <int kRows, int kVectors>
HWY_NOINLINE void int4_tile(const Int4Tile& t) {
  const F32 d;
  const I32 di;
  const auto mask = hn::Set(di, static_cast<int32_t>(kPartMask));
  hn::Vec<F32> totals[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) totals[r][v] = hn::Zero(d);
  }
  const int16_t* HWY_RESTRICT x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = t.x + r * t.groups * kInt4Group;
  const int32_t* HWY_RESTRICT w = t.w;
  const uint16_t* HWY_RESTRICT scales = t.scales;
  int64_t l = 0;
  for (int64_t g = 0; g < t.groups; ++g, scales += t.width) {
    Sums sums[kRows][kVectors][kSums];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v][kSums - 1] = hn::Zero(di);
        sums[r][v][0] = hn::Set(di, t.x_groups[r * t.groups + g].start);
      }
    }
    for (int64_t word = 0; word < kInt4GroupWords; ++word, w += t.width) {
      Sums words[kVectors];
      if constexpr (kRows <= kStreamingRows) {
        for (int v = 0; v < kVectors; ++v) hwy::Prefetch(w + kIntegerWordsAhead + v * word_lanes());
      }
      for (int v = 0; v < kVectors; ++v) words[v] = hn::LoadU(di, w + v * word_lanes());
      for (int part = 0; part < kParts; ++part, l += kPartNumbers) {
        Sums numbers[kVectors];
        for (int v = 0; v < kVectors; ++v) {
          numbers[v] = hn::And(words[v], mask);
          words[v] = hn::ShiftRight<4>(words[v]);
        }
        for (int r = 0; r < kRows; ++r) AddPart(numbers, x[r] + l, sums[r]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      const auto scale = F16ToF32(hn::LoadU(U16(), scales + v * word_lanes()));
      for (int r = 0; r < kRows; ++r) {
        const auto x_scale = hn::Set(d, t.x_groups[r * t.groups + g].scale);
        const auto sum = hn::Mul(hn::ConvertTo(d, WholeSum(sums[r][v])), x_scale);
        totals[r][v] = hn::Add(totals[r][v], hn::Mul(sum, scale));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t col = v * word_lanes(), left = t.cols - col;
      float* y = t.y + r * t.y_row + col;
      if (left >= word_lanes()) {
        hn::StoreU(totals[r][v], d, y);
      } else if (left > 0) {
        StoreFirst(totals[r][v], d, static_cast<size_t>(left), y);
      }
    }
  }
}

void int4_product_kernel(ThreadPool& pool, const PackedProduct& p) {
  const PackedLayout layout(WeightType::int4, p.w.n, p.w.k);
  const int64_t row_numbers = layout.groups * kInt4Group;
  auto* x = reinterpret_cast<int16_t*>(p.scratch);
  auto* x_groups = reinterpret_cast<Int4XGroup*>(x + p.m * row_numbers);
  pool.parallel_for(p.m, ceil_div(kRoundingGrain, p.w.k), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      round_row(p.x + i * p.x_row, p.w.k, x + i * row_numbers, x_groups + i * layout.groups);
    }
  });
  for_each_part(pool, p, [&](const ProductPart& part) HWY_ATTR {
    const int64_t first = part.col / kPanelCols * kPanelCols;
    const auto* w = reinterpret_cast<const int32_t*>(p.w.memory + layout.panel_offset(first));
    const auto* scales = reinterpret_cast<const uint16_t*>(p.w.memory + layout.scales_offset()) +
                         first * layout.groups;
    for_each_tile<kInt4Rows, kInt4Vectors>(
        part, [&](auto rows, auto vectors, int64_t row, int64_t col) HWY_ATTR {
          int4_tile<rows, vectors>({.x = x + row * row_numbers,
                                    .x_groups = x_groups + row * layout.groups,
                                    .groups = layout.groups,
                                    .w = w + col - first,
                                    .scales = scales + col - first,
                                    .width = layout.width(first),
                                    .y = p.y + row * p.y_row + col,
                                    .y_row = p.y_row,
                                    .cols = p.w.n - col});
        });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(int4_product_kernel);

void int4_product(ThreadPool& pool, const PackedProduct& p) {
  HWY_DYNAMIC_DISPATCH(int4_product_kernel)(pool, p);
}

int64_t int4_product_scratch_floats(int64_t m, int64_t k) {
  constexpr int64_t kGroupBytes = kInt4Group * sizeof(int16_t) + sizeof(Int4XGroup);
  return m * ceil_div(k, kInt4Group) * (kGroupBytes / static_cast<int64_t>(sizeof(float)));
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
