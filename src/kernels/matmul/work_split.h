// How matmuls are split: grain sizes for threads, parts of equal size, and prefetching.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed::kernels {

// Multiply-adds that amortize waking a thread: about 10 µs of one core's work.
inline constexpr int64_t kGrainWork = 1 << 18;
// Bytes of a weight that amortize it, for GEMV, where reading takes the time: 5 µs from a distant
// cache.
inline constexpr int64_t kGrainBytes = 1 << 17;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The grain: units of work that amortize waking a thread, by arithmetic or by bytes.
inline int64_t grain_units(int64_t unit_work, int64_t unit_bytes, int64_t grain_work = kGrainWork) {
  const int64_t by_work = ceil_div(grain_work, unit_work);
  const int64_t by_bytes = ceil_div(kGrainBytes, unit_bytes);
  return by_work < by_bytes ? by_work : by_bytes;
}

// Splits `size` into as few parts of at most `largest` as possible, all of about the same size;
// returns the size of a part.
inline int64_t even_part(int64_t size, int64_t largest) {
  return ceil_div(size, ceil_div(size, largest));
}

// Depth along K of a packed panel, which a register tile runs over without a break, and the widest
// panel of any instruction set.
inline constexpr int64_t kPackedDepth = 384;
inline constexpr int64_t kMaxPanelCols = 48;

inline constexpr int64_t kLineBytes = 64;

// The share of `bytes` that each of `parts` prefetches, in whole cache lines.
inline int64_t prefetch_bytes_each(int64_t bytes, int64_t parts) {
  return ceil_div(bytes, parts * kLineBytes) * kLineBytes;
}

// Prefetches to L2; L1 is full of what is in use. Always inline: GCC 12 removes calls of a function
// that only prefetches.
__attribute__((always_inline)) inline void prefetch_l2(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(from + i, 0, 2);
}

}  // namespace heed::kernels
