// int4 matmul: each group of a row of x is quantized to 12 bits; eight inputs at a time are multiplied
// and added in 32 bits. The sums of groups are added in f32.
//
// A 32-bit word of the weight holds eight inputs of one column as q + 8, unsigned. The excess of a
// group's sum, 8 Σ x, is the same for all columns.

// The AVX-512 target with VNNI.
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/matmul/amx.h"
#include "kernels/matmul/packed_matmul.h"
#include "kernels/matmul/work_split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/int4_matmul.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/matmul/integer_matmul-inl.h"
#include "kernels/simd/f16-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

#ifndef HEED_KERNELS_INT4_MATMUL_ONCE_
#define HEED_KERNELS_INT4_MATMUL_ONCE_
namespace heed::kernels {

// 12 bits are 16 · high + low, a signed byte and four bits. The weight times 16 is a byte too, so that
// one sum takes both. More bits gain nothing: the perplexity of a text is 6.0699, and 6.0698 with 16
// bits.
inline constexpr float kInt4LargestX = 2047;
inline constexpr int kInt4LowBits = 4;
inline constexpr int32_t kInt4Offset = 8;  // is added to the weight's numbers
inline constexpr int64_t kInt4WordInputs = 8;
inline constexpr int64_t kInt4GroupWords = kInt4Group / kInt4WordInputs;

// A group of a row of x: the scale of its sums, and their initial value.
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
// A 32-bit word holds eight nibbles, unpacked in kParts passes: pass p takes nibbles p, p + kParts, ….
// x is in the same order, kPartNumbers for a pass. A tile of kRows sums a group in kSums<kRows>
// vectors.

#if HEED_DOT_OF_BYTES

// x = 16 · high + low: the low and the high halves of a part's four numbers are a word each. With few
// rows they are summed apart. With more rows the weight is multiplied by 16 for the high halves, which
// leaves registers for more rows. (Arm's bytes are signed and have no room for that.)
inline constexpr int kParts = 2;
template <int kRows>
inline constexpr int kSums = kRows <= 2 || HWY_ARCH_ARM ? 2 : 1;
inline constexpr uint32_t kPartMask = 0x0F0F0F0F;
HWY_ALIGN inline constexpr uint8_t kOrder[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                 2, 6, 10, 14, 3, 7, 11, 15};
#elif HEED_DOT_OF_PAIRS

inline constexpr int kParts = 4;
template <int kRows>
inline constexpr int kSums = 1;
inline constexpr uint32_t kPartMask = 0x000F000F;
HWY_ALIGN inline constexpr uint8_t kOrder[16] = {0, 1, 8,  9,  2, 3, 10, 11,
                                                 4, 5, 12, 13, 6, 7, 14, 15};
#else

inline constexpr int kParts = 8;
template <int kRows>
inline constexpr int kSums = 1;
inline constexpr uint32_t kPartMask = 0x0000000F;

#endif

inline constexpr int64_t kPartNumbers = kInt4WordInputs / kParts;

// Two numbers in each word.
HWY_INLINE Int32Vec SetPair(const int16_t* x) {
  int32_t word;
  std::memcpy(&word, x, sizeof word);
  return hn::Set(Int32Tag(), word);
}

// A part of a vector of words: its numbers, and 16 times them (used for kSums = 1 of bytes).
struct WordPart {
  Int32Vec ones, sixteens;
};
HWY_INLINE WordPart TakePart(Int32Vec& words) {
  const Int32Tag d;
  const Int32Vec ones = hn::And(words, hn::Set(d, static_cast<int32_t>(kPartMask)));
  words = hn::ShiftRight<4>(words);
  return {ones, hn::ShiftLeft<4>(ones)};
}

// Adds the products of a part of kVectors vectors with the numbers of x that belong to it.
template <int kVectors, int kSumsOfTile>
HWY_INLINE void AddPart(const WordPart (&w)[kVectors], const int16_t* x,
                        Int32Vec (&sums)[kVectors][kSumsOfTile]) {
#if HEED_DOT_OF_BYTES
  const Int32Vec low = SetPair(x), high = SetPair(x + 2);
  for (int v = 0; v < kVectors; ++v) {
    sums[v][0] = AddDotOfBytes(sums[v][0], w[v].ones, low);
    Int32Vec& high_sums = sums[v][kSumsOfTile - 1];
    high_sums = AddDotOfBytes(high_sums, kSumsOfTile == 2 ? w[v].ones : w[v].sixteens, high);
  }
#elif HEED_DOT_OF_PAIRS
  const Int32Vec pair = SetPair(x);
  for (int v = 0; v < kVectors; ++v) sums[v][0] = AddDotOfPairs(sums[v][0], w[v].ones, pair);
#else
  const Int32Vec number = hn::Set(Int32Tag(), static_cast<int32_t>(*x));
  for (int v = 0; v < kVectors; ++v) sums[v][0] = hn::Add(sums[v][0], hn::Mul(w[v].ones, number));
#endif
}

template <int kSumsOfTile>
HWY_INLINE Int32Vec WholeSum(const Int32Vec (&sums)[kSumsOfTile]) {
  if constexpr (kSumsOfTile == 2) {
    return hn::Add(sums[0], hn::ShiftLeft<kInt4LowBits>(sums[1]));
  } else {
    return sums[0];
  }
}

// ---- quantizing x -------------------------------------------------------------------------------

// Two vectors of numbers of x in the order that AddPart() needs.
HWY_INLINE void store_numbers(Int32Vec first, Int32Vec second, int16_t* to) {
  const hn::Rebind<int16_t, Int32Tag> half;
#if HEED_DOT_OF_BYTES || HEED_DOT_OF_PAIRS
  const hn::Repartition<int16_t, Int32Tag> d;
  auto numbers = hn::Combine(d, hn::DemoteTo(half, second), hn::DemoteTo(half, first));
#if HEED_DOT_OF_BYTES
  const auto low = hn::Set(d, (1 << kInt4LowBits) - 1), high = hn::Set(d, int16_t{-256});
  numbers = hn::Or(hn::And(hn::ShiftLeft<8 - kInt4LowBits>(numbers), high), hn::And(numbers, low));
#endif
  const auto order = hn::LoadDup128(hn::Repartition<uint8_t, Int32Tag>(), kOrder);
  hn::StoreU(hn::TableLookupBytes(numbers, hn::BitCast(d, order)), d, to);
#else
  hn::StoreU(hn::DemoteTo(half, first), half, to);
  hn::StoreU(hn::DemoteTo(half, second), half, to + lanes());
#endif
}

// x [kInt4Group]
HWY_INLINE Int4XGroup quantize_x_group(const float* HWY_RESTRICT x, int16_t* HWY_RESTRICT numbers) {
  const FloatTag d;
  const float largest = largest_magnitude(x, kInt4Group);
  if (!(largest >= kNothing) || !std::isfinite(largest)) {
    std::fill_n(numbers, kInt4Group, int16_t{0});
    return {std::isfinite(largest) ? 0 : std::numeric_limits<float>::quiet_NaN(), 0};
  }
  const auto inverse = hn::Set(d, kInt4LargestX / largest);
  const auto rounded = [&](int64_t i) HWY_ATTR {
    return hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse));
  };
  Int32Vec sums = hn::Zero(Int32Tag());
  for (int64_t i = 0; i < kInt4Group; i += 2 * lanes()) {
    const Int32Vec first = rounded(i), second = rounded(i + lanes());
    sums = hn::Add(sums, hn::Add(first, second));
    store_numbers(first, second, numbers + i);
  }
  return {largest / kInt4LargestX, -kInt4Offset * hn::GetLane(hn::SumOfLanes(Int32Tag(), sums))};
}

// Quantized rows of x, one after the other; for AMX, the same group of 16 rows lies together, 1 KB, as
// a tile reads it.
struct Int4X {
  int16_t* numbers;
  Int4XGroup* groups;
  int64_t row_groups;
  int64_t tiled;  // rows, a multiple of kAmxRows

  int64_t together(int64_t row) const { return row < tiled ? kAmxRows : 1; }
  // Group 0 of a row; group g is g · together(row) groups after it.
  int64_t first_group(int64_t row) const {
    return row < tiled ? row / kAmxRows * kAmxRows * row_groups + row % kAmxRows : row * row_groups;
  }
};

void quantize_x_row(const float* x, int64_t k, const Int4X& to, int64_t row) {
  int64_t group = to.first_group(row);
  const int64_t step = to.together(row);
  for (; k >= kInt4Group; k -= kInt4Group, x += kInt4Group, group += step) {
    to.groups[group] = quantize_x_group(x, to.numbers + group * kInt4Group);
  }
  if (k == 0) return;
  float rest[kInt4Group] = {};
  std::copy_n(x, k, rest);
  to.groups[group] = quantize_x_group(rest, to.numbers + group * kInt4Group);
}

// ---- register tiles -----------------------------------------------------------------------------

#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
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
  int64_t cols;  // of y, from the first column of the tile on
};

// Adds a group's sums of a vector of columns to their totals.
HWY_INLINE FloatVec add_group(FloatVec totals, Int32Vec sums, float x_scale, FloatVec scales) {
  const FloatTag d;
  const auto scaled = hn::Mul(hn::ConvertTo(d, sums), hn::Set(d, x_scale));
  return hn::Add(totals, hn::Mul(scaled, scales));
}

// y has `left` columns from here on, which may be none.
HWY_INLINE void store_totals(FloatVec totals, int64_t left, float* y) {
  const FloatTag d;
  if (left >= lanes()) {
    hn::StoreU(totals, d, y);
  } else if (left > 0) {
    StoreFirst(totals, d, static_cast<size_t>(left), y);
  }
}

template <int kRows, int kVectors>
HWY_NOINLINE void int4_tile(const Int4Tile& t) {
  const FloatTag d;
  const Int32Tag di;
  FloatVec totals[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) totals[r][v] = hn::Zero(d);
  }
  const int16_t* HWY_RESTRICT x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = t.x + r * t.groups * kInt4Group;
  const int32_t* HWY_RESTRICT w = t.w;
  const uint16_t* HWY_RESTRICT scales = t.scales;
  int64_t l = 0;
  for (int64_t g = 0; g < t.groups; ++g, scales += t.width) {
    Int32Vec sums[kRows][kVectors][kSums<kRows>];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v][kSums<kRows> - 1] = hn::Zero(di);
        sums[r][v][0] = hn::Set(di, t.x_groups[r * t.groups + g].start);
      }
    }
    for (int64_t word = 0; word < kInt4GroupWords; ++word, w += t.width) {
      Int32Vec words[kVectors];
      if constexpr (kRows <= kStreamingRows) {
        for (int v = 0; v < kVectors; ++v) hwy::Prefetch(w + kIntegerPrefetchWords + v * lanes());
      }
      for (int v = 0; v < kVectors; ++v) words[v] = hn::LoadU(di, w + v * lanes());
      for (int part = 0; part < kParts; ++part, l += kPartNumbers) {
        WordPart numbers[kVectors];
        for (int v = 0; v < kVectors; ++v) numbers[v] = TakePart(words[v]);
        for (int r = 0; r < kRows; ++r) AddPart(numbers, x[r] + l, sums[r]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      const auto scale = F16ToF32(hn::LoadU(Uint16Tag(), scales + v * lanes()));
      for (int r = 0; r < kRows; ++r) {
        totals[r][v] = add_group(totals[r][v], WholeSum(sums[r][v]),
                                 t.x_groups[r * t.groups + g].scale, scale);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t col = v * lanes();
      store_totals(totals[r][v], t.cols - col, t.y + r * t.y_row + col);
    }
  }
}

#if HWY_TARGET == HWY_AVX3_DL

// Groups of 16 columns that are unpacked to bytes at a time, for use by all rows: 24 KB.
inline constexpr int64_t kUnpackedGroups = 24;
inline constexpr int64_t kGroupBytes = kAmxRows * kAmxBytes;
static_assert(kGroupBytes == 2 * kInt4Group * kAmxCols);

// Unpacks groups of 16 columns to the layout of an AMX tile: in turns, the numbers for the low halves
// of x and 16 times them for the high halves.
HWY_INLINE void unpack_to_bytes(const int32_t* HWY_RESTRICT w, int64_t width, int64_t groups,
                                std::byte* HWY_RESTRICT to) {
  const Int32Tag d;
  auto* numbers = reinterpret_cast<int32_t*>(to);
  for (int64_t word = 0; word < groups * kInt4GroupWords; ++word, w += width) {
    Int32Vec words = hn::LoadU(d, w);
    for (int part = 0; part < kParts; ++part, numbers += 2 * kAmxCols) {
      const WordPart taken = TakePart(words);
      hn::Store(taken.ones, d, numbers);
      hn::Store(taken.sixteens, d, numbers + kAmxCols);
    }
  }
}

// Sums of AMX tiles for a group of 16 columns.
struct Int4TileSums {
  const int32_t* sums;         // [16 · tiles, 16]
  const Int4XGroup* x_groups;  // [16] of each tile, x_tile apart
  int64_t x_tile;
  int tiles;
};
HWY_INLINE void add_tiles(const Int4TileSums& t, FloatVec scales, float* HWY_RESTRICT totals) {
  const FloatTag d;
  const Int32Tag di;
  const int32_t* HWY_RESTRICT sums = t.sums;
  const Int4XGroup* HWY_RESTRICT x_groups = t.x_groups;
  for (int tile = 0; tile < t.tiles; ++tile, x_groups += t.x_tile) {
    for (int r = 0; r < kAmxRows; ++r, sums += kAmxCols, totals += kAmxCols) {
      const Int32Vec whole = hn::Add(hn::Load(di, sums), hn::Set(di, x_groups[r].start));
      hn::Store(add_group(hn::Load(d, totals), whole, x_groups[r].scale, scales), d, totals);
    }
  }
}

// Computes the rows that are in AMX layout, with the same sums; returns their number.
int64_t gemm_by_amx_tiles(const PackedMatmul& p, const PackedLayout& layout, const Int4X& x,
                          const MatmulPart& part) {
  constexpr int64_t kMostRows = kAmxMostTiles * kAmxRows;
  const int64_t whole = std::clamp<int64_t>(x.tiled - part.row, 0, part.rows);
  if (whole == 0) return 0;
  const int64_t first = part.col / kPanelCols * kPanelCols, width = layout.width(first);
  const auto* w = reinterpret_cast<const int32_t*>(p.w.memory + layout.panel_offset(first));
  const auto* scales = reinterpret_cast<const uint16_t*>(p.w.memory + layout.scales_offset()) +
                       first * layout.groups;
  const int64_t blocks = ceil_div(part.end - part.col, kAmxCols) *
                         ceil_div(layout.groups, kUnpackedGroups) * ceil_div(whole, kMostRows);
  const int64_t panel_bytes = layout.steps * width * layout.column_bytes;
  const int64_t prefetch_bytes = prefetch_bytes_each(panel_bytes, blocks);
  const std::byte* prefetch = reinterpret_cast<const std::byte*>(w) + panel_bytes;
  HWY_ALIGN std::byte numbers[kUnpackedGroups * kGroupBytes];
  HWY_ALIGN float totals[kIntegerBlockRows * kAmxCols];
  HWY_ALIGN int32_t sums[2][kMostRows * kAmxCols];
  const AmxTiles ready;
  for (int64_t col = part.col; col < part.end; col += kAmxCols) {
    std::fill_n(totals, whole * kAmxCols, 0.0f);
    for (int64_t from = 0; from < layout.groups; from += kUnpackedGroups) {
      const int64_t groups = std::min(kUnpackedGroups, layout.groups - from);
      unpack_to_bytes(w + from * kInt4GroupWords * width + col - first, width, groups, numbers);
      for (int64_t row = 0, count = 0; row < whole; row += count) {
        const int64_t left = (whole - row) / kAmxRows;
        const int tiles = left >= 4 ? 4 : left >= 2 ? 2 : 1;
        count = tiles * kAmxRows;
        prefetch_l2(prefetch, prefetch_bytes);
        prefetch += prefetch_bytes;
        const int64_t x_tile = x.first_group(part.row + row) + from * kAmxRows;
        const auto multiply = [&](int64_t g) HWY_ATTR {
          const int16_t* first_tile = x.numbers + (x_tile + g * kAmxRows) * kInt4Group;
          amx_matmul({.x = reinterpret_cast<const int8_t*>(first_tile),
                      .x_row = kAmxBytes,
                      .x_tile = layout.groups * kGroupBytes,
                      .w = numbers + g * kGroupBytes,
                      .w_row = kAmxBytes,
                      .chunks = 1},
                     tiles, sums[g % 2]);
        };
        multiply(0);
        for (int64_t g = 0; g < groups; ++g) {
          // Storing AMX tiles has a long latency: meanwhile the previous sums are added.
          if (g + 1 < groups) multiply(g + 1);
          const auto scale =
              F16ToF32(hn::LoadU(Uint16Tag(), scales + (from + g) * width + col - first));
          add_tiles({.sums = sums[g % 2],
                     .x_groups = x.groups + x_tile + g * kAmxRows,
                     .x_tile = kAmxRows * layout.groups,
                     .tiles = tiles},
                    scale, totals + row * kAmxCols);
        }
      }
    }
    for (int64_t r = 0; r < whole; ++r) {
      store_totals(hn::Load(FloatTag(), totals + r * kAmxCols), p.w.n - col,
                   p.y + (part.row + r) * p.y_row + col);
    }
  }
  return whole;
}

#endif

void int4_matmul_kernel(ThreadPool& pool, const PackedMatmul& p) {
  const PackedLayout layout(p.w.type, p.w.n, p.w.k);
  auto* numbers = reinterpret_cast<int16_t*>(p.scratch);
  Int4X x{.numbers = numbers,
          .groups = reinterpret_cast<Int4XGroup*>(numbers + p.m * layout.groups * kInt4Group),
          .row_groups = layout.groups,
          .tiled = 0};
#if HWY_TARGET == HWY_AVX3_DL
  if (has_amx()) x.tiled = p.m / kAmxRows * kAmxRows;
#endif
  pool.parallel_for(p.m, ceil_div(kRoundingGrain, p.w.k), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) quantize_x_row(p.x + i * p.x_row, p.w.k, x, i);
  });
  for_each_part(pool, p, [&](MatmulPart part) HWY_ATTR {
#if HWY_TARGET == HWY_AVX3_DL
    const int64_t done = gemm_by_amx_tiles(p, layout, x, part);
    part.row += done, part.rows -= done;
    if (part.rows == 0) return;
#endif
    const int64_t first = part.col / kPanelCols * kPanelCols;
    const auto* w = reinterpret_cast<const int32_t*>(p.w.memory + layout.panel_offset(first));
    const auto* scales = reinterpret_cast<const uint16_t*>(p.w.memory + layout.scales_offset()) +
                         first * layout.groups;
    for_each_tile<kInt4Rows, kInt4Vectors>(
        part, [&](auto rows, auto vectors, int64_t row, int64_t col) HWY_ATTR {
          const int64_t group = x.first_group(row);
          int4_tile<rows, vectors>({.x = x.numbers + group * kInt4Group,
                                    .x_groups = x.groups + group,
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

HWY_EXPORT(int4_matmul_kernel);

void int4_matmul(ThreadPool& pool, const PackedMatmul& p) {
  HWY_DYNAMIC_DISPATCH(int4_matmul_kernel)(pool, p);
}

int64_t int4_matmul_scratch_floats(int64_t m, const PackedWeight& w, int) {
  constexpr int64_t kGroupBytes = kInt4Group * sizeof(int16_t) + sizeof(Int4XGroup);
  return m * ceil_div(w.k, kInt4Group) * (kGroupBytes / static_cast<int64_t>(sizeof(float)));
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
