// Shared by int8_matmul.cc and int4_matmul.cc: the largest magnitude of inputs, dot products of small
// integers in the 32-bit words of a vector, and the split of a matmul into register tiles. A file that
// includes it must define HWY_WANT_AVX3_DL first.

// Per-target include guard, as Highway's own -inl.h files have it.
#if defined(HEED_KERNELS_INTEGER_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_INTEGER_MATMUL_INL_H_
#undef HEED_KERNELS_INTEGER_MATMUL_INL_H_
#else
#define HEED_KERNELS_INTEGER_MATMUL_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/thread_pool.h"
#include "hwy/highway.h"
#include "kernels/matmul/epilogue-inl.h"
#include "kernels/matmul/packed_matmul.h"
#include "kernels/matmul/work_split.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

#ifndef HEED_KERNELS_INTEGER_MATMUL_ONCE_
#define HEED_KERNELS_INTEGER_MATMUL_ONCE_
namespace heed::kernels {

// M rows, N outputs, K inputs. None of these sizes changes a result.
inline constexpr int64_t kIntegerGrainWork = 1
                                             << 19;  // multiply-adds that amortize waking a thread
inline constexpr int64_t kIntegerBlockRows = 256;    // rows that use a panel before the next one
inline constexpr int64_t kRoundingGrain = 1 << 14;   // elements of x for a thread to quantize
// Up to this many rows in a tile (GEMV), the weight is prefetched from memory.
inline constexpr int kStreamingRows = 4;
inline constexpr int64_t kIntegerPrefetchWords = 1152;
// Inputs whose largest magnitude is so small that its reciprocal might be infinite are zeros.
inline constexpr float kNothing = 1e-30f;

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- quantizing x -------------------------------------------------------------------------------

// NaN if any x is NaN. Compared as integers: without the sign, floats are ordered by their bits, NaN
// last.
HWY_INLINE float largest_magnitude(const float* x, int64_t count) {
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  // Scalar code: clang 14 needs minutes and all memory to compile emulated vectors.
  int32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<int32_t>(std::abs(x[i])));
  }
  return std::bit_cast<float>(largest);
#else
  const FloatTag d;
  const Int32Tag dw;
  Int32Vec largest = hn::Zero(dw);
  for_each_vector(d, count, [&](int64_t i, auto io) HWY_ATTR {
    largest = hn::Max(largest, hn::BitCast(dw, hn::Abs(io.Load(d, x + i))));
  });
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(dw, largest)));
#endif
}

// ---- dot products in the words of a vector ------------------------------------------------------
//
// HEED_DOT_OF_BYTES: four bytes in a word (VNNI). HEED_DOT_OF_PAIRS: two 16-bit numbers. Or neither.
// Products are added in 32 bits and never saturate.

#undef HEED_DOT_OF_BYTES
#undef HEED_DOT_OF_PAIRS

#if HWY_TARGET == HWY_AVX3_DL

#define HEED_DOT_OF_BYTES 1
// Unsigned bytes of w, signed ones of x.
HWY_INLINE Int32Vec AddDotOfBytes(Int32Vec sums, Int32Vec w, Int32Vec x) {
  // Not by the intrinsic: Highway 1.0 enables another extension (avxvnni) in the compiler, though it
  // chooses this target only if the CPU has avx512_vnni.
  asm("vpdpbusd %2, %1, %0" : "+v"(sums.raw) : "v"(w.raw), "v"(x.raw));
  return sums;
}

#elif HWY_TARGET == HWY_NEON && defined(__ARM_FEATURE_DOTPROD)

#define HEED_DOT_OF_BYTES 1
// Signed bytes of both.
HWY_INLINE Int32Vec AddDotOfBytes(Int32Vec sums, Int32Vec w, Int32Vec x) {
  return Int32Vec{vdotq_s32(sums.raw, vreinterpretq_s8_s32(w.raw), vreinterpretq_s8_s32(x.raw))};
}

#elif HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

#define HEED_DOT_OF_PAIRS 1
HWY_INLINE Int32Vec AddDotOfPairs(Int32Vec sums, Int32Vec w, Int32Vec x) {
  const hn::Repartition<int16_t, Int32Tag> d16;
  Int32Vec none = hn::Zero(Int32Tag());  // x86 leaves the second sums alone
  return hn::ReorderWidenMulAccumulate(Int32Tag(), hn::BitCast(d16, w), hn::BitCast(d16, x), sums,
                                       none);
}

#endif

// ---- parts of a matmul --------------------------------------------------------------------------

// Rows [row, row + rows) times columns [col, end), all of one panel.
struct MatmulPart {
  int64_t row, rows, col, end;
};

// Calls each(integral_constant) with a number from 1 to kMost.
template <int kMost, class Each>
HWY_INLINE void with_constant(int64_t number, const Each& each) {
  if constexpr (kMost > 1) {
    if (number < kMost) return with_constant<kMost - 1>(number, each);
  }
  each(std::integral_constant<int, kMost>());
}

// Calls each(rows, vectors, row, col) for the register tiles of a part; the first two are
// integral_constants, at most kRows and kVectors. The columns of the last may be beyond p.w.n.
// As few tiles as possible, of about the same size: the weight is read for each.
template <int kRows, int kVectors, class Each>
HWY_INLINE void for_each_tile(const MatmulPart& part, const Each& each) {
  const auto tiles = [&](int64_t col, auto vectors) HWY_ATTR {
    int64_t row = part.row, left = part.rows;
    for (int64_t count = ceil_div(left, kRows); count > 0; --count) {
      const int64_t some = ceil_div(left, count);
      with_constant<kRows>(some, [&](auto rows) HWY_ATTR { each(rows, vectors, row, col); });
      row += some, left -= some;
    }
  };
  int64_t col = part.col;
  for (; col + kVectors * lanes() <= part.end; col += kVectors * lanes()) {
    tiles(col, std::integral_constant<int, kVectors>());
  }
  for (; col < part.end; col += lanes()) tiles(col, std::integral_constant<int, 1>());
}

// Calls multiply(part) for all parts of a matmul, on all threads, each followed by the epilogue.
template <class Multiply>
HWY_INLINE void for_each_part(ThreadPool& pool, const PackedMatmul& p, const Multiply& multiply) {
  // Threads get whole units of kPanelUnit columns, so that all get about as many. The border between
  // two threads may be within a panel.
  const int64_t units = ceil_div(p.w.n, kPanelUnit), blocks = ceil_div(p.m, kIntegerBlockRows);
  const int64_t block_rows = std::min(p.m, kIntegerBlockRows);
  const int64_t unit_bytes = quantized_row_bytes(p.w.type, p.w.k) * kPanelUnit;
  const int64_t grain = grain_units(block_rows * p.w.k * kPanelUnit, unit_bytes, kIntegerGrainWork);
  pool.parallel_for(units * blocks, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    while (begin < end) {
      const int64_t block = begin / units, next = std::min(end, (block + 1) * units);
      const int64_t row = block * kIntegerBlockRows, rows = std::min(kIntegerBlockRows, p.m - row);
      const int64_t end_col = (next - block * units) * kPanelUnit;
      for (int64_t col = (begin - block * units) * kPanelUnit, panel_end = 0; col < end_col;
           col = panel_end) {
        panel_end = std::min((col / kPanelCols + 1) * kPanelCols, end_col);
        multiply(MatmulPart{.row = row, .rows = rows, .col = col, .end = panel_end});
        apply_epilogue(
            p, {.row = row, .rows = rows, .col = col, .cols = std::min(panel_end, p.w.n) - col});
      }
      begin = next;
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_INTEGER_MATMUL_INL_H_
