// How work is cut into parts.
#pragma once

#include <cstdint>

namespace heed::kernels {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// `size` in as few parts as `largest` allows, all of about the same size: the size of one.
inline int64_t even_part(int64_t size, int64_t largest) {
  return ceil_div(size, ceil_div(size, largest));
}

}  // namespace heed::kernels
