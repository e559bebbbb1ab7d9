#include "kernels/rows/maxima.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "kernels/simd/each_target_testing.h"
#include "kernels/simd/kernel_testing.h"

namespace heed::kernels {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

TEST(RunMaxima, IgnoreNan) {
  for_each_target([] {
    for (const int64_t runs : {0, 1, 2, 7}) {
      Random random({.seed = 3, .step = static_cast<uint32_t>(runs)});
      std::vector<float> numbers(static_cast<size_t>(runs * kMaximaRun));
      for (float& x : numbers) {
        const uint64_t kind = random.below(8);
        x = kind == 0 ? NAN : kind == 1 ? kNever : random.normal();
      }
      Unaligned x(numbers);
      std::vector<float> maxima(static_cast<size_t>(runs), 99.0f);
      run_maxima(x.data(), runs, maxima.data());
      for (int64_t run = 0; run < runs; ++run) {
        float expected = kNever;
        for (int64_t i = run * kMaximaRun; i < (run + 1) * kMaximaRun; ++i) {
          if (x.data()[i] > expected) expected = x.data()[i];
        }
        EXPECT_EQ(maxima[static_cast<size_t>(run)], expected) << "run " << run << " of " << runs;
      }
    }
  });
}

TEST(RunMaxima, OfOnlyNan) {
  for_each_target([] {
    const std::vector<float> x(kMaximaRun, NAN);
    float maximum = 0;
    run_maxima(x.data(), 1, &maximum);
    EXPECT_EQ(maximum, kNever);
  });
}

}  // namespace
}  // namespace heed::kernels
