// Products of 8-bit integers: each row of x is rounded to 8 bits, then four steps along k at a time
// are multiplied and added up in 32 bits.
//
// A word of the weight holds four numbers of one column, q + 128, so that they are unsigned; a word
// of x holds four signed ones. What is too much in a sum, 128 Σ x, is the same for all columns.

// The 512-bit target with the dot product of bytes.
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "kernels/packed_product.h"
#include "kernels/parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8_product.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/epilogue-inl.h"
#include "kernels/vector_loop-inl.h"

#ifndef HEED_KERNELS_INT8_PRODUCT_ONCE_
#define HEED_KERNELS_INT8_PRODUCT_ONCE_
namespace heed::kernels {

// None of these sizes shows in a result.
inline constexpr int64_t kInt8ShareWork = 1 << 19;  // multiply-adds that are worth waking a thread
inline constexpr int64_t kInt8BlockRows = 256;      // rows that meet a panel before the next one
inline constexpr int64_t kRoundingGrain = 1 << 14;  // elements of x for a thread to round
inline constexpr int64_t kInt8WordsAhead = 1152;    // of the weight, that few rows ask for early
// Beyond it, 127 · 127 · k may not fit into 32 bits.
inline constexpr int64_t kInt8MaxInputs = 128 << 10;

// A row of x as integers: how words of four inputs are kept depends on the instruction set.
inline constexpr int64_t kMaxWordsOfFour = 2;
// What the sums must be multiplied by, and what is too much in them.
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

using Int8F32 = hn::ScalableTag<float>;
using Int8I32 = hn::RebindToSigned<Int8F32>;
using Sums = hn::Vec<Int8I32>;

HWY_INLINE int64_t word_lanes() { return static_cast<int64_t>(hn::Lanes(Int8I32())); }

// ---- four steps of one vector of columns --------------------------------------------------------
//
// WeightWords is a vector of words of the weight, made ready for use with several rows. kXWords
// words of x belong to them, `part` words apart: AddDot(sums, weight, x, part) adds the four
// products of each column. kOffset is what the weight's numbers have too much.

#if HWY_TARGET == HWY_AVX3_DL

inline constexpr int64_t kXWords = 1;
inline constexpr int32_t kOffset = 128;
struct WeightWords {
  Sums words;
};
HWY_INLINE WeightWords LoadWords(const int32_t* p) { return {hn::LoadU(Int8I32(), p)}; }
HWY_INLINE Sums AddDot(Sums sums, const WeightWords& w, const int32_t* x, int64_t) {
  // Not by its intrinsic: Highway 1.0 names another extension (avxvnni) to the compiler, though it
  // chooses this target only where the CPU has avx512_vnni.
  const Sums broadcast = hn::Set(Int8I32(), *x);
  asm("vpdpbusd %2, %1, %0" : "+v"(sums.raw) : "v"(w.words.raw), "v"(broadcast.raw));
  return sums;
}

#elif HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

// Products of bytes in 16 bits could saturate, so bytes become 16-bit numbers: those at even places
// of a word and those at odd ones, of x and the weight alike. Pairs of products are added in 32
// bits.
inline constexpr int64_t kXWords = 2;
inline constexpr int32_t kOffset = 128;
using Int8I16 = hn::Repartition<int16_t, Int8I32>;
struct WeightWords {
  hn::Vec<Int8I16> even, odd;
};
HWY_INLINE WeightWords LoadWords(const int32_t* p) {
  const Int8I16 d;
  const hn::RebindToUnsigned<Int8I16> du;
  const auto words = hn::BitCast(du, hn::LoadU(Int8I32(), p));
  return {hn::BitCast(d, hn::And(words, hn::Set(du, uint16_t{255}))),
          hn::BitCast(d, hn::ShiftRight<8>(words))};
}
HWY_INLINE Sums AddDot(Sums sums, const WeightWords& w, const int32_t* x, int64_t part) {
  const Int8I32 d;
  const Int8I16 d16;
  Sums none = hn::Zero(d);  // x86 leaves the second sums alone
  sums = hn::ReorderWidenMulAccumulate(d, w.even, hn::BitCast(d16, hn::Set(d, *x)), sums, none);
  return hn::ReorderWidenMulAccumulate(d, w.odd, hn::BitCast(d16, hn::Set(d, x[part])), sums, none);
}

#elif HWY_TARGET == HWY_NEON && defined(__ARM_FEATURE_DOTPROD)

inline constexpr int64_t kXWords = 1;
inline constexpr int32_t kOffset = 0;  // this dot product takes signed bytes only
struct WeightWords {
  int8x16_t bytes;
};
HWY_INLINE WeightWords LoadWords(const int32_t* p) {
  return {veorq_s8(vreinterpretq_s8_s32(vld1q_s32(p)), vdupq_n_s8(-128))};
}
HWY_INLINE Sums AddDot(Sums sums, const WeightWords& w, const int32_t* x, int64_t) {
  return Sums{vdotq_s32(sums.raw, w.bytes, vreinterpretq_s8_s32(vdupq_n_s32(*x)))};
}

#else

inline constexpr int64_t kXWords = 1;
inline constexpr int32_t kOffset = 128;
struct WeightWords {
  Sums byte[4];
};
HWY_INLINE WeightWords LoadWords(const int32_t* p) {
  const Int8I32 d;
  const hn::RebindToUnsigned<Int8I32> du;
  const auto words = hn::BitCast(du, hn::LoadU(d, p));
  const auto mask = hn::Set(du, 255u);
  return {{hn::BitCast(d, hn::And(words, mask)),
           hn::BitCast(d, hn::And(hn::ShiftRight<8>(words), mask)),
           hn::BitCast(d, hn::And(hn::ShiftRight<16>(words), mask)),
           hn::BitCast(d, hn::ShiftRight<24>(words))}};
}
HWY_INLINE Sums AddDot(Sums sums, const WeightWords& w, const int32_t* x, int64_t) {
  const Int8I32 d;
  int8_t q[4];
  std::memcpy(q, x, sizeof q);
  for (int b = 0; b < 4; ++b) {
    sums = hn::Add(sums, hn::Mul(w.byte[b], hn::Set(d, static_cast<int32_t>(q[b]))));
  }
  return sums;
}

#endif

// ---- rounding x ---------------------------------------------------------------------------------

HWY_INLINE float largest_magnitude(const float* x, int64_t k) {
  const Int8F32 d;
  auto largest = hn::Zero(d);
  for_each_vector(d, k, [&](int64_t i, auto io) HWY_ATTR {
    const auto magnitude = hn::Abs(io.Load(d, x + i));
    // Whatever Max() makes of a NaN: here it stays.
    largest = hn::IfThenElse(
        hn::IsNaN(largest), largest,
        hn::IfThenElse(hn::IsNaN(magnitude), magnitude, hn::Max(largest, magnitude)));
  });
  HWY_ALIGN float lane[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(largest, d, lane);
  float result = 0;
  for (int64_t i = 0; i < word_lanes(); ++i) {
    if (!(lane[i] <= result)) result = std::isnan(result) ? result : lane[i];
  }
  return result;
}

// Words of four bytes to the form that AddDot() wants.
HWY_INLINE void arrange_words([[maybe_unused]] int32_t* words, [[maybe_unused]] int64_t count) {
  if constexpr (kXWords == 2) {
    const hn::ScalableTag<int32_t> d;
    const hn::Repartition<int16_t, decltype(d)> d16;
    // The second half first: it is where nothing is yet.
    for_each_vector(d, count, [&](int64_t i, auto io) HWY_ATTR {
      const auto both = hn::BitCast(d16, io.Load(d, words + i));
      const auto odd = hn::ShiftRight<8>(both);
      const auto even = hn::ShiftRight<8>(hn::ShiftLeft<8>(both));
      io.Store(hn::BitCast(d, odd), d, words + count + i);
      io.Store(hn::BitCast(d, even), d, words + i);
    });
  }
}

// One row of x as integers; `words` has room for kXWords words of each four inputs.
Int8Row round_row(const float* HWY_RESTRICT x, int64_t k, int32_t* HWY_RESTRICT words) {
  const Int8F32 d;
  const Int8I32 di;
  const hn::Rebind<int8_t, Int8F32> d8;
  const int64_t count = ceil_div(k, 4);
  auto* q = reinterpret_cast<int8_t*>(words);
  const float largest = largest_magnitude(x, k);
  // So small that its reciprocal would be infinite: nothing.
  constexpr float kNothing = 1e-30f;
  if (!(largest >= kNothing) || !std::isfinite(largest)) {
    std::memset(words, 0, static_cast<size_t>(kXWords * count) * sizeof(int32_t));
    const bool is_finite = std::isfinite(largest);
    return {is_finite ? 0 : std::numeric_limits<float>::quiet_NaN(), 0};
  }
  words[count - 1] = 0;  // inputs beyond the last
  const float scale = largest / 127;
  const auto inverse = hn::Set(d, 127 / largest);
  auto sums = hn::Zero(di);
  for_each_vector(d, k, [&](int64_t i, auto io) HWY_ATTR {
    const auto rounded = hn::NearestInt(hn::Mul(io.Load(d, x + i), inverse));
    sums = hn::Add(sums, rounded);  // zeros beyond the end
    io.Store(hn::DemoteTo(d8, rounded), d8, q + i);
  });
  HWY_ALIGN int32_t lane[HWY_MAX_BYTES / sizeof(int32_t)];
  hn::Store(sums, di, lane);
  int32_t sum = 0;
  for (int64_t i = 0; i < word_lanes(); ++i) sum += lane[i];
  arrange_words(words, count);
  return {scale, kOffset * sum};
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
  int64_t cols;  // that y has room for
};

template <int kRows, int kVectors>
HWY_NOINLINE void int8_tile(const Int8Tile& t) {
  const Int8F32 d;
  const Int8I32 di;
  Sums sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(di);
  }
  const int32_t* HWY_RESTRICT x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = t.x + r * kXWords * t.steps;
  const int32_t* HWY_RESTRICT w = t.w;
  for (int64_t l = 0; l < t.steps; ++l, w += t.width) {
    WeightWords words[kVectors];
    if constexpr (kRows <= 4) {
      for (int v = 0; v < kVectors; ++v) hwy::Prefetch(w + kInt8WordsAhead + v * word_lanes());
    }
    for (int v = 0; v < kVectors; ++v) words[v] = LoadWords(w + v * word_lanes());
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = AddDot(sums[r][v], words[v], x[r] + l, t.steps);
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const int64_t col = v * word_lanes(), left = t.cols - col;
    if (left <= 0) break;
    const auto scales = hn::LoadU(d, t.scales + col);
    for (int r = 0; r < kRows; ++r) {
      const auto whole = hn::ConvertTo(d, hn::Sub(sums[r][v], hn::Set(di, t.rows[r].excess)));
      const auto y = hn::Mul(hn::Mul(whole, hn::Set(d, t.rows[r].scale)), scales);
      if (left >= word_lanes()) {
        hn::StoreU(y, d, t.y + r * t.y_row + col);
      } else {
        StoreFirst(y, d, static_cast<size_t>(left), t.y + r * t.y_row + col);
      }
    }
  }
}

template <int kVectors>
HWY_INLINE void int8_tiles(Int8Tile t, int64_t rows) {
  const auto advance = [&](int64_t by) {
    t.x += by * kXWords * t.steps;
    t.rows += by;
    t.y += by * t.y_row;
    return rows - by;
  };
  while (rows >= kInt8Rows) int8_tile<kInt8Rows, kVectors>(t), rows = advance(kInt8Rows);
  while (rows >= 4) int8_tile<4, kVectors>(t), rows = advance(4);
  while (rows >= 2) int8_tile<2, kVectors>(t), rows = advance(2);
  while (rows >= 1) int8_tile<1, kVectors>(t), rows = advance(1);
}

// All the rows of x as integers.
struct Int8Rows {
  const Int8Row* rows;
  const int32_t* words;
  int64_t row_words;
};

// Columns [col, end) of one panel, for rows [row, row + rows).
struct Int8Part {
  int64_t row, rows, col, end;
};

void int8_panel(const PackedProduct& p, const PackedLayout& layout, const Int8Rows& x,
                const Int8Part& part) {
  const int64_t first = part.col / kPanelCols * kPanelCols;
  const auto* w = reinterpret_cast<const int32_t*>(p.w.memory + layout.panel_offset(first));
  const auto* scales = reinterpret_cast<const float*>(p.w.memory + layout.scales_offset());
  const auto tiles = [&](int64_t col, auto vectors) HWY_ATTR {
    int8_tiles<decltype(vectors)::value>({.x = x.words + part.row * x.row_words,
                                          .rows = x.rows + part.row,
                                          .w = w + col - first,
                                          .width = layout.width(first),
                                          .steps = layout.steps,
                                          .scales = scales + col,
                                          .y = p.y + part.row * p.y_row + col,
                                          .y_row = p.y_row,
                                          .cols = p.w.n - col},
                                         part.rows);
  };
  int64_t col = part.col;
  for (; col + kInt8Vectors * word_lanes() <= part.end; col += kInt8Vectors * word_lanes()) {
    tiles(col, std::integral_constant<int, kInt8Vectors>());
  }
  for (; col < part.end; col += word_lanes()) tiles(col, std::integral_constant<int, 1>());
  finish(p, {.row = part.row,
             .rows = part.rows,
             .col = part.col,
             .cols = std::min(part.end, p.w.n) - part.col});
}

void int8_product_kernel(ThreadPool& pool, const PackedProduct& p) {
  const PackedLayout layout(WeightType::int8, p.w.n, p.w.k);
  auto* rows = reinterpret_cast<Int8Row*>(p.scratch);
  auto* words = reinterpret_cast<int32_t*>(rows + p.m);
  const Int8Rows x{rows, words, kXWords * layout.steps};
  pool.parallel_for(p.m, ceil_div(kRoundingGrain, p.w.k), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      rows[i] = round_row(p.x + i * p.x_row, p.w.k, words + i * x.row_words);
    }
  });

  // Columns are dealt by kPanelUnit of them, so that all threads get as many; the border between
  // two may then be within a panel.
  const int64_t units = ceil_div(p.w.n, kPanelUnit), blocks = ceil_div(p.m, kInt8BlockRows);
  const int64_t block_rows = std::min(p.m, kInt8BlockRows);
  const int64_t grain = ceil_div(kInt8ShareWork, block_rows * p.w.k * kPanelUnit);
  pool.parallel_for(units * blocks, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    while (begin < end) {
      const int64_t block = begin / units, next = std::min(end, (block + 1) * units);
      const int64_t row = block * kInt8BlockRows, row_count = std::min(kInt8BlockRows, p.m - row);
      const int64_t end_col = (next - block * units) * kPanelUnit;
      for (int64_t col = (begin - block * units) * kPanelUnit, panel_end = 0; col < end_col;
           col = panel_end) {
        panel_end = std::min((col / kPanelCols + 1) * kPanelCols, end_col);
        int8_panel(p, layout, x, {.row = row, .rows = row_count, .col = col, .end = panel_end});
      }
      begin = next;
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(int8_product_kernel);

void int8_product(ThreadPool& pool, const PackedProduct& p) {
  HEED_CHECK(p.w.k <= kInt8MaxInputs, "int8_product: sums would not fit into 32 bits");
  HWY_DYNAMIC_DISPATCH(int8_product_kernel)(pool, p);
}

int64_t int8_product_scratch_floats(int64_t m, int64_t k) {
  constexpr int64_t kRowFloats = sizeof(Int8Row) / sizeof(float);
  return m * (kRowFloats + kMaxWordsOfFour * ceil_div(k, 4));
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
