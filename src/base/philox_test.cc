#include "base/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "heed/error.h"

namespace heed {
namespace {

using Block = std::array<uint32_t, 4>;

constexpr int kDraws = 1 << 20;

// Five standard errors of a mean of kDraws numbers with this deviation.
double tolerance(double deviation) { return 5 * deviation / std::sqrt(kDraws); }

// Known answers of Philox4x32-10, from Random123 (kat_vectors). Its counter words 0…3 are our
// {block low, block high, site, step}; its key words 0 and 1 are our seed, low half first.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(random_block({.seed = 0, .step = 0, .site = 0}, 0),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(random_block({.seed = ~uint64_t{0}, .step = ~0u, .site = ~0u}, ~uint64_t{0}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(random_block({.seed = 0x299f31d0'a4093822, .step = 0x03707344, .site = 0x13198a2e},
                         0x85a308d3'243f6a88),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IsAConstantExpression) { static_assert(random_block({}, 0)[0] == 0x6627e8d5); }

TEST(Random, ReadsTheBlocksInOrder) {
  const RandomKey key{.seed = 1, .step = 2, .site = 3};
  Random random(key);
  for (uint64_t block = 0; block < 3; ++block)
    for (uint32_t word : random_block(key, block)) EXPECT_EQ(random.next(), word);
  EXPECT_EQ(Random(key, 2).next(), random_block(key, 2)[0]);
}

TEST(Random, SeedStepAndSiteSelectTheStream) {
  const uint32_t base = Random({.seed = 1, .step = 1, .site = 1}).next();
  EXPECT_NE(Random({.seed = 2, .step = 1, .site = 1}).next(), base);
  EXPECT_NE(Random({.seed = 1, .step = 2, .site = 1}).next(), base);
  EXPECT_NE(Random({.seed = 1, .step = 1, .site = 2}).next(), base);
}

TEST(Random, UniformHasItsMomentsAndRange) {
  Random random({.seed = 11});
  double sum = 0, squares = 0;
  float smallest = 1, largest = 0;
  for (int i = 0; i < kDraws; ++i) {
    const float x = random.uniform();
    sum += x;
    squares += double{x} * x;
    smallest = std::min(smallest, x);
    largest = std::max(largest, x);
  }
  EXPECT_GE(smallest, 0.0f);
  EXPECT_LT(largest, 1.0f);
  EXPECT_LT(smallest, 1e-4f);
  EXPECT_GT(largest, 1 - 1e-4f);
  EXPECT_NEAR(sum / kDraws, 0.5, tolerance(std::sqrt(1.0 / 12)));
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, tolerance(std::sqrt(4.0 / 45)));
}

TEST(Random, NormalHasItsMomentsAndTails) {
  Random random({.seed = 12});
  std::array<double, 5> moments{};
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    for (size_t power = 1; power < moments.size(); ++power)
      moments[power] += std::pow(x, static_cast<double>(power)) / kDraws;
    beyond_two += std::abs(x) > 2;
  }
  // Moments 0, 1, 0, 3; a power's variance is E[x^2p] - E[x^p]^2 = 1, 2, 15, 96.
  EXPECT_NEAR(moments[1], 0, tolerance(1));
  EXPECT_NEAR(moments[2], 1, tolerance(std::sqrt(2.0)));
  EXPECT_NEAR(moments[3], 0, tolerance(std::sqrt(15.0)));
  EXPECT_NEAR(moments[4], 3, tolerance(std::sqrt(96.0)));
  const double share = std::erfc(std::sqrt(2.0));  // of a normal beyond two deviations
  EXPECT_NEAR(double{1} * beyond_two / kDraws, share, tolerance(std::sqrt(share * (1 - share))));
}

TEST(Random, NormalsInARowAreUncorrelated) {
  Random random({.seed = 13});
  double previous = random.normal(), products = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    products += x * previous;
    previous = x;
  }
  EXPECT_NEAR(products / kDraws, 0, tolerance(1));
}

TEST(Random, BelowIsUniform) {
  for (uint64_t n : {uint64_t{1}, uint64_t{2}, uint64_t{7}, uint64_t{10}, uint64_t{100}}) {
    Random random({.seed = 14});
    std::vector<int> counts(n);
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t x = random.below(n);
      ASSERT_LT(x, n);
      ++counts[x];
    }
    const double share = 1.0 / static_cast<double>(n);
    for (int count : counts)
      EXPECT_NEAR(double{1} * count / kDraws, share, tolerance(std::sqrt(share * (1 - share))))
          << "n = " << n;
  }
}

TEST(Random, BelowLargeNumbersIsUniform) {
  // Worst cases of a biased method: at three quarters of a power of two, the lower half of the
  // results would be twice as likely.
  for (uint64_t n : {uint64_t{3} << 30, (uint64_t{1} << 32) - 1, uint64_t{1} << 32,
                     uint64_t{3} << 40, uint64_t{3} << 62, ~uint64_t{0}}) {
    Random random({.seed = 15});
    double sum = 0;
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t x = random.below(n);
      ASSERT_LT(x, n);
      sum += static_cast<double>(x) / static_cast<double>(n);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, tolerance(std::sqrt(1.0 / 12))) << "n = " << n;
  }
}

TEST(Random, BelowZeroIsAnInternalError) { EXPECT_THROW(Random({}).below(0), Error); }

}  // namespace
}  // namespace heed
