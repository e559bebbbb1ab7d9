// What the tests of row-wise kernels share; for *_test.cc only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simd/each_target_testing.h"
#include "kernels/simd/kernel_testing.h"

namespace heed::kernels {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// Around the widths of vectors and of unrolled loops; a row has at least one element.
inline constexpr int64_t kRowSizes[] = {1, 7, 8, 17, 63, 64, 65, 1000};

inline Floats random_row(int64_t n, float scale, uint32_t seed) {
  Floats values = random_floats(n, seed);
  for (float& value : values) value *= scale;
  return values;
}

inline Floats zeros(int64_t n) { return Floats(static_cast<size_t>(n)); }

// |value - expected| <= tolerance * (1 + |expected|) for all elements; the first that is not is
// reported.
inline void expect_near(const Floats& values, const Doubles& expected, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(std::abs(values[i] - expected[i]), tolerance * (1 + std::abs(expected[i])))
        << "element " << i << " is " << values[i] << ", not " << expected[i];
  }
}

}  // namespace heed::kernels
