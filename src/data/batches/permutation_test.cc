#include "data/batches/permutation.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace heed {
namespace {

TEST(Permutation, ContainsEachNumberOnce) {
  for (const uint64_t n : {1, 2, 3, 4, 5, 7, 16, 17, 100, 1023, 1024, 1025, 29000}) {
    const Permutation order(n, {.seed = n});
    std::vector<int> seen(n);
    for (uint64_t i = 0; i < n; ++i) ++seen.at(order(i));
    EXPECT_EQ(seen, std::vector<int>(n, 1)) << n;
  }
}

TEST(Permutation, CoversALargeRange) {
  const uint64_t n = uint64_t{1} << 40;
  const Permutation order(n, {.seed = 1});
  uint64_t all = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_LT(order(i), n);
    all |= order(i);
  }
  EXPECT_EQ(all, n - 1);
}

TEST(Permutation, DiffersBySeedAndEpoch) {
  const uint64_t n = 1000;
  const Permutation a(n, {.seed = 1, .step = 0}), b(n, {.seed = 1, .step = 1}),
      c(n, {.seed = 2, .step = 0});
  int same_ab = 0, same_ac = 0;
  for (uint64_t i = 0; i < n; ++i) {
    same_ab += a(i) == b(i);
    same_ac += a(i) == c(i);
  }
  EXPECT_LT(same_ab, 10);  // 1 is expected
  EXPECT_LT(same_ac, 10);
}

// The position of a number and its successor are uniform over many keys.
TEST(Permutation, IsUniform) {
  constexpr uint64_t kSize = 10;
  constexpr int kKeys = 20000;
  std::vector<int> places(kSize * kSize), next(kSize * kSize);
  for (int seed = 0; seed < kKeys; ++seed) {
    const Permutation order(kSize, {.seed = static_cast<uint64_t>(seed)});
    for (uint64_t i = 0; i < kSize; ++i) {
      ++places[i * kSize + order(i)];
      if (i > 0) ++next[order(i - 1) * kSize + order(i)];
    }
  }
  const double expected = double{kKeys} / kSize;
  double chi = 0;
  for (const int count : places) chi += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi, 81 + 5 * 13);  // 81 degrees of freedom, standard deviation sqrt(2 * 81)
  for (uint64_t a = 0; a < kSize; ++a) {
    for (uint64_t b = 0; b < kSize; ++b) {
      if (a != b) {
        EXPECT_NEAR(next[a * kSize + b], expected, 6 * 45) << a << " before " << b;
      }
    }
  }
}

}  // namespace
}  // namespace heed
