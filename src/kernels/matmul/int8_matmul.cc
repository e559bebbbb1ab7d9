// int8 matmul: each row of x is quantized to 8 bits; four inputs at a time are multiplied and added
// in 32 bits.
//
// A 32-bit word of the weight holds four inputs of one column as q + 128, unsigned, as VNNI requires;
// a word of x holds four signed inputs. Zero-point compensation: 128 Σ x is subtracted from each sum;
// it is the same for all columns.

// The AVX-512 target with VNNI.
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "kernels/matmul/amx.h"
#include "kernels/matmul/packed_matmul.h"
#include "kernels/matmul/work_split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/int8_matmul.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/matmul/integer_matmul-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

#ifndef HEED_KERNELS_INT8_MATMUL_ONCE_
#define HEED_KERNELS_INT8_MATMUL_ONCE_
namespace heed::kernels {

// Words for four quantized inputs of x: depends on the instruction set.
inline constexpr int64_t kMaxWordsOfFour = 2;
inline constexpr int64_t kPrefetchSteps = 4;
// Rows from which on AMX tiles of 16 rows are faster than VNNI, even if some of them are empty.
inline constexpr int64_t kAmxLeastRows = 9;
// Scale and excess of the sums of a row.
struct Int8Row {
  float scale;
  int32_t excess;
};

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- four steps of one vector of columns --------------------------------------------------------
//
// WeightWords is a vector of words of the weight in the form that the instructions need. It belongs to
// kXWords words of x, `part` words apart: AddDot(sums, weight, x, part) adds the four products of each
// column. kOffset is added to the weight's numbers.

#if HEED_DOT_OF_BYTES

inline constexpr int64_t kXWords = 1;
#if HWY_ARCH_ARM
inline constexpr int32_t kOffset = 0;  // its bytes are signed
#else
inline constexpr int32_t kOffset = 128;
#endif
struct WeightWords {
  Int32Vec words;
};
HWY_INLINE WeightWords LoadWords(const int32_t* p) {
  const Int32Tag d;
  const Int32Vec words = hn::LoadU(d, p);
  return {kOffset == 0 ? hn::Xor(words, hn::Set(d, static_cast<int32_t>(0x80808080u))) : words};
}
HWY_INLINE Int32Vec AddDot(Int32Vec sums, const WeightWords& w, const int32_t* x, int64_t) {
  return AddDotOfBytes(sums, w.words, hn::Set(Int32Tag(), *x));
}

#elif HEED_DOT_OF_PAIRS

// Bytes are widened to 16 bits: even and odd bytes of a word apart, for x and the weight.
inline constexpr int64_t kXWords = 2;
inline constexpr int32_t kOffset = 128;
struct WeightWords {
  Int32Vec even, odd;
};
HWY_INLINE WeightWords LoadWords(const int32_t* p) {
  const Int32Tag d;
  const hn::Repartition<uint16_t, Int32Tag> d16;
  const Int32Vec words = hn::LoadU(d, p);
  return {hn::And(words, hn::Set(d, 0x00FF00FF)),
          hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(d16, words)))};
}
HWY_INLINE Int32Vec AddDot(Int32Vec sums, const WeightWords& w, const int32_t* x, int64_t part) {
  sums = AddDotOfPairs(sums, w.even, hn::Set(Int32Tag(), *x));
  return AddDotOfPairs(sums, w.odd, hn::Set(Int32Tag(), x[part]));
}

#else

inline constexpr int64_t kXWords = 1;
inline constexpr int32_t kOffset = 128;
struct WeightWords {
  Int32Vec byte[4];
};
HWY_INLINE WeightWords LoadWords(const int32_t* p) {
  const Int32Tag d;
  const hn::RebindToUnsigned<Int32Tag> du;
  const auto words = hn::BitCast(du, hn::LoadU(d, p));
  const auto mask = hn::Set(du, 255u);
  return {{hn::BitCast(d, hn::And(words, mask)),
           hn::BitCast(d, hn::And(hn::ShiftRight<8>(words), mask)),
           hn::BitCast(d, hn::And(hn::ShiftRight<16>(words), mask)),
           hn::BitCast(d, hn::ShiftRight<24>(words))}};
}
HWY_INLINE Int32Vec AddDot(Int32Vec sums, const WeightWords& w, const int32_t* x, int64_t) {
  const Int32Tag d;
  int8_t q[4];
  std::memcpy(q, x, sizeof q);
  for (int b = 0; b < 4; ++b) {
    sums = hn::Add(sums, hn::Mul(w.byte[b], hn::Set(d, static_cast<int32_t>(q[b]))));
  }
  return sums;
}

#endif

// ---- quantizing x -------------------------------------------------------------------------------

// Words of four bytes to the form that AddDot() needs.
HWY_INLINE void arrange_words([[maybe_unused]] int32_t* words, [[maybe_unused]] int64_t count) {
  if constexpr (kXWords == 2) {
    const Int32Tag d;
    const hn::Repartition<int16_t, decltype(d)> d16;
    // The second half first: the first half still holds the input.
    for_each_vector(d, count, [&](int64_t i, auto io) HWY_ATTR {
      const auto both = hn::BitCast(d16, io.Load(d, words + i));
      const auto odd = hn::ShiftRight<8>(both);
      const auto even = hn::ShiftRight<8>(hn::ShiftLeft<8>(both));
      io.Store(hn::BitCast(d, odd), d, words + count + i);
      io.Store(hn::BitCast(d, even), d, words + i);
    });
  }
}

// Quantizes one row of x; `words` has room for kXWords words for each four inputs.
Int8Row quantize_x_row(const float* HWY_RESTRICT x, int64_t k, int32_t* HWY_RESTRICT words) {
  const FloatTag d;
  const Int32Tag di;
  const hn::Rebind<int8_t, FloatTag> d8;
  const int64_t count = ceil_div(k, 4);
  auto* q = reinterpret_cast<int8_t*>(words);
  const float largest = largest_magnitude(x, k);
  if (!(largest >= kNothing) || !std::isfinite(largest)) {
    std::memset(words, 0, static_cast<size_t>(kXWords * count) * sizeof(int32_t));
    const bool is_finite = std::isfinite(largest);
    return {is_finite ? 0 : std::numeric_limits<float>::quiet_NaN(), 0};
  }
  words[count - 1] = 0;  // padding
  const float scale = largest / 127;
  const auto inverse = hn::Set(d, 127 / largest);
  auto sums = hn::Zero(di);
  for_each_vector(d, k, [&](int64_t i, auto io) HWY_ATTR {
    const auto rounded = hn::NearestInt(hn::Mul(io.Load(d, x + i), inverse));
    sums = hn::Add(sums, rounded);  // zeros beyond the end
    io.Store(hn::DemoteTo(d8, rounded), d8, q + i);
  });
  arrange_words(words, count);
  return {scale, kOffset * hn::GetLane(hn::SumOfLanes(di, sums))};
}

// ---- register tiles -----------------------------------------------------------------------------

#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kInt8Rows = 8;
inline constexpr int kInt8Vectors = 3;
#else
inline constexpr int kInt8Rows = 4;  // the weight takes two registers a vector
inline constexpr int kInt8Vectors = 2;
#endif

struct Int8Tile {
  const int32_t* x;     // [rows, kXWords · steps]
  const Int8Row* rows;  // [rows]
  const int32_t* w;     // the panel, from the tile's first column on
  int64_t width;        // of the panel
  int64_t steps;
  const float* scales;  // of the tile's columns
  float* y;
  int64_t y_row;
  int64_t cols;  // of y, from the first column of the tile on
  // Memory to prefetch: prefetch_bytes every kPrefetchSteps steps.
  const std::byte* prefetch;
  int64_t prefetch_bytes;
};

// Scales of a vector of columns, to convert sums to floats.
struct Int8Columns {
  FloatVec scales;
  int64_t left;  // columns of y from here on
};
HWY_INLINE void store_sums(Int32Vec sums, const Int8Row& row, const Int8Columns& columns,
                           float* y) {
  const FloatTag d;
  const auto whole = hn::ConvertTo(d, hn::Sub(sums, hn::Set(Int32Tag(), row.excess)));
  const auto values = hn::Mul(hn::Mul(whole, hn::Set(d, row.scale)), columns.scales);
  if (columns.left >= lanes()) {
    hn::StoreU(values, d, y);
  } else {
    StoreFirst(values, d, static_cast<size_t>(columns.left), y);
  }
}

template <int kRows, int kVectors>
HWY_NOINLINE void int8_tile(const Int8Tile& t) {
  const Int32Tag di;
  Int32Vec sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(di);
  }
  const int32_t* HWY_RESTRICT x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = t.x + r * kXWords * t.steps;
  const int32_t* HWY_RESTRICT w = t.w;
  [[maybe_unused]] const std::byte* prefetch = t.prefetch;
  for (int64_t l = 0; l < t.steps; ++l, w += t.width) {
    WeightWords words[kVectors];
    if constexpr (kRows <= kStreamingRows) {
      for (int v = 0; v < kVectors; ++v) hwy::Prefetch(w + kIntegerPrefetchWords + v * lanes());
    } else if (l % kPrefetchSteps == 0) {
      prefetch_l2(prefetch, t.prefetch_bytes);
      prefetch += t.prefetch_bytes;
    }
    for (int v = 0; v < kVectors; ++v) words[v] = LoadWords(w + v * lanes());
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = AddDot(sums[r][v], words[v], x[r] + l, t.steps);
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const int64_t col = v * lanes(), left = t.cols - col;
    if (left <= 0) break;
    const Int8Columns columns{hn::LoadU(FloatTag(), t.scales + col), left};
    for (int r = 0; r < kRows; ++r) {
      store_sums(sums[r][v], t.rows[r], columns, t.y + r * t.y_row + col);
    }
  }
}

#if HWY_TARGET == HWY_AVX3_DL

// A part of a matmul by AMX tiles. The last tile may have unused rows, whose sums are ignored.
struct Int8Rows {
  const int32_t* x;     // [rows in whole tiles, steps]
  const Int8Row* rows;  // [rows]
};
void gemm_by_amx_tiles(const PackedMatmul& p, const PackedLayout& layout, const Int8Rows& rows,
                       const MatmulPart& part) {
  const int64_t whole = ceil_div(part.rows, kAmxRows) * kAmxRows;
  const int64_t first = part.col / kPanelCols * kPanelCols;
  const int64_t step_bytes = layout.width(first) * layout.column_bytes;
  const std::byte* panel = p.w.memory + layout.panel_offset(first);
  const auto* scales = reinterpret_cast<const float*>(p.w.memory + layout.scales_offset());
  constexpr int64_t kMostRows = kAmxMostTiles * kAmxRows, kChunkSteps = kAmxBytes / 4;
  const int64_t blocks = ceil_div(whole, kMostRows) * ceil_div(part.end - part.col, kAmxCols);
  const int64_t prefetch_bytes = prefetch_bytes_each(kChunkSteps * step_bytes, blocks);
  const int64_t chunks = layout.steps / kChunkSteps;
  const std::byte* prefetch = panel + layout.steps * step_bytes;
  HWY_ALIGN int32_t sums[kMostRows * kAmxCols];
  const AmxTiles ready;
  for (int64_t col = part.col; col < part.end; col += kAmxCols) {
    const Int8Columns columns{hn::LoadU(FloatTag(), scales + col), p.w.n - col};
    for (int64_t row = 0, count = 0; row < whole; row += count) {
      const int64_t left = (whole - row) / kAmxRows;
      const int tiles = left >= 4 ? 4 : left >= 2 ? 2 : 1;
      count = tiles * kAmxRows;
      amx_matmul({.x = reinterpret_cast<const int8_t*>(rows.x + row * layout.steps),
                  .x_row = layout.steps * 4,
                  .x_tile = kAmxRows * layout.steps * 4,
                  .w = panel + (col - first) * layout.column_bytes,
                  .w_row = step_bytes,
                  .chunks = chunks,
                  .prefetch = prefetch,
                  .prefetch_bytes = prefetch_bytes},
                 tiles, sums);
      prefetch += chunks * prefetch_bytes;
      for (int64_t r = 0; r < std::min(count, part.rows - row); ++r) {
        store_sums(hn::Load(Int32Tag(), sums + r * kAmxCols), rows.rows[row + r], columns,
                   p.y + (part.row + row + r) * p.y_row + col);
      }
    }
  }
}

#endif

void int8_matmul_kernel(ThreadPool& pool, const PackedMatmul& p) {
  const PackedLayout layout(p.w.type, p.w.n, p.w.k);
  auto* rows = reinterpret_cast<Int8Row*>(p.scratch);
  auto* x = reinterpret_cast<int32_t*>(rows + p.m);
  const int64_t row_words = kXWords * layout.steps;
  pool.parallel_for(p.m, ceil_div(kRoundingGrain, p.w.k), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      rows[i] = quantize_x_row(p.x + i * p.x_row, p.w.k, x + i * row_words);
    }
  });
#if HWY_TARGET == HWY_AVX3_DL
  const bool has_tiles = has_amx() && layout.steps % (kAmxBytes / 4) == 0;
#endif
  for_each_part(pool, p, [&](const MatmulPart& part) HWY_ATTR {
#if HWY_TARGET == HWY_AVX3_DL
    if (has_tiles && part.rows >= kAmxLeastRows) {
      return gemm_by_amx_tiles(p, layout, {x + part.row * row_words, rows + part.row}, part);
    }
#endif
    const int64_t first = part.col / kPanelCols * kPanelCols;
    const auto* w = reinterpret_cast<const int32_t*>(p.w.memory + layout.panel_offset(first));
    const auto* scales = reinterpret_cast<const float*>(p.w.memory + layout.scales_offset());
    // The next panel follows this one in memory. Each tile prefetches its share of it; otherwise the
    // first tile of the next panel would wait for memory.
    const int64_t width = layout.width(first), tiles = ceil_div(part.rows, kInt8Rows);
    const int64_t step_bytes = width * static_cast<int64_t>(sizeof(int32_t));
    const int64_t prefetch_bytes = prefetch_bytes_each(kPrefetchSteps * step_bytes, tiles);
    const int64_t turns = ceil_div(layout.steps, kPrefetchSteps);
    const auto* next_panel = reinterpret_cast<const std::byte*>(w + layout.steps * width);
    for_each_tile<kInt8Rows, kInt8Vectors>(part, [&](auto tile_rows, auto vectors, int64_t row,
                                                     int64_t col) HWY_ATTR {
      int8_tile<tile_rows, vectors>(
          {.x = x + row * row_words,
           .rows = rows + row,
           .w = w + col - first,
           .width = width,
           .steps = layout.steps,
           .scales = scales + col,
           .y = p.y + row * p.y_row + col,
           .y_row = p.y_row,
           .cols = p.w.n - col,
           .prefetch = next_panel + ceil_div(row - part.row, kInt8Rows) * turns * prefetch_bytes,
           .prefetch_bytes = prefetch_bytes});
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(int8_matmul_kernel);

void int8_matmul(ThreadPool& pool, const PackedMatmul& p) {
  HEED_CHECK(p.w.k <= weight_type(p.w.type).max_inputs,
             "int8_matmul: sums of so many inputs must fit into 32 bits");
  HWY_DYNAMIC_DISPATCH(int8_matmul_kernel)(pool, p);
}

int64_t int8_matmul_scratch_floats(int64_t m, const PackedWeight& w, int) {
  constexpr int64_t kRowFloats = sizeof(Int8Row) / sizeof(float);
  // AMX reads whole tiles of rows, but one word for four inputs.
  static_assert(kMaxWordsOfFour * kAmxLeastRows >= kAmxRows);
  return m * (kRowFloats + kMaxWordsOfFour * ceil_div(w.k, 4));
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
