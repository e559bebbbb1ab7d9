// How work is cut into parts.
#pragma once

#include <cstdint>

namespace heed::kernels {

// Multiply-adds of floats that are worth waking a thread for: about 10 µs of one core's work.
inline constexpr int64_t kShareWork = 1 << 18;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// `size` in as few parts as `largest` allows, all of about the same size: the size of one.
inline int64_t even_part(int64_t size, int64_t largest) {
  return ceil_div(size, ceil_div(size, largest));
}

}  // namespace heed::kernels
