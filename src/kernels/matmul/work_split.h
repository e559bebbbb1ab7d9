// How work is cut into parts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed::kernels {

// Multiply-adds of floats that are worth waking a thread for: about 10 µs of one core's work.
inline constexpr int64_t kGrainWork = 1 << 18;
// Bytes of a weight that are: with few rows, reading them takes the time, 5 µs from a distant
// cache.
inline constexpr int64_t kGrainBytes = 1 << 17;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How many units of work are, by the one or the other.
inline int64_t grain_units(int64_t unit_work, int64_t unit_bytes, int64_t grain_work = kGrainWork) {
  const int64_t by_work = ceil_div(grain_work, unit_work);
  const int64_t by_bytes = ceil_div(kGrainBytes, unit_bytes);
  return by_work < by_bytes ? by_work : by_bytes;
}

// `size` in as few parts as `largest` allows, all of about the same size: the size of one.
inline int64_t even_part(int64_t size, int64_t largest) {
  return ceil_div(size, ceil_div(size, largest));
}

// Steps along k of a weight that products pack at a time: a register tile walks through them in one
// go. And the widest panel of columns of any instruction set.
inline constexpr int64_t kPackedDepth = 384;
inline constexpr int64_t kMaxPanelCols = 48;

inline constexpr int64_t kLineBytes = 64;

// Of `bytes` that `parts` ask for in turn, how many one of them does: whole lines.
inline int64_t prefetch_bytes_each(int64_t bytes, int64_t parts) {
  return ceil_div(bytes, parts * kLineBytes) * kLineBytes;
}

// Asks for what is needed soon, to the second-level cache: what is worked on fills the first.
// Always inline: of a function that only asks, GCC 12 finds that it does nothing, and leaves the
// call out.
__attribute__((always_inline)) inline void prefetch_l2(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(from + i, 0, 2);
}

}  // namespace heed::kernels
