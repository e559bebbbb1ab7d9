#include "ops/positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/positions_testing.h"

namespace heed {
namespace {

TEST(Sinusoids, AreThePapersFormulaInBothLayouts) {
  const auto interleaved = sinusoidal_table(50, 16, SinusoidLayout::interleaved);
  const auto half = sinusoidal_table(50, 16, SinusoidLayout::half);
  for (size_t p : {0u, 1u, 7u, 49u}) {
    for (size_t i = 0; i < 8; ++i) {
      const double angle = static_cast<double>(p) / std::pow(10000.0, 2.0 * i / 16);
      EXPECT_FLOAT_EQ(interleaved[p * 16 + 2 * i], static_cast<float>(std::sin(angle)));
      EXPECT_FLOAT_EQ(interleaved[p * 16 + 2 * i + 1], static_cast<float>(std::cos(angle)));
      EXPECT_EQ(half[p * 16 + i], interleaved[p * 16 + 2 * i]);
      EXPECT_EQ(half[p * 16 + 8 + i], interleaved[p * 16 + 2 * i + 1]);
    }
  }
}

// As M2M100SinusoidalPositionalEmbedding of transformers computes them.
TEST(Sinusoids, CanReachTheLongestWaveItself) {
  const auto table = sinusoidal_table(50, 16, SinusoidLayout::half_inclusive);
  for (size_t p : {0u, 1u, 7u, 49u}) {
    for (size_t i = 0; i < 8; ++i) {
      const double angle =
          static_cast<double>(p) * std::exp(-static_cast<double>(i) * std::log(10000.0) / 7);
      EXPECT_FLOAT_EQ(table[p * 16 + i], static_cast<float>(std::sin(angle)));
      EXPECT_FLOAT_EQ(table[p * 16 + 8 + i], static_cast<float>(std::cos(angle)));
    }
  }
}

// ⟨PE_m, PE_n⟩ = Σ cos(ω_i (m - n)): only the distance matters, and it is largest at 0.
TEST(Sinusoids, TheirProductDependsOnTheDistanceAlone) {
  const auto table = sinusoidal_table(100, 32, SinusoidLayout::interleaved);
  const auto product = [&](size_t m, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < 32; ++i) sum += double{table[m * 32 + i]} * table[n * 32 + i];
    return sum;
  };
  for (size_t distance : {1u, 5u, 20u}) {
    EXPECT_NEAR(product(3, 3 + distance), product(70, 70 + distance), 1e-4);
    EXPECT_LT(product(3, 3 + distance), product(3, 3));
  }
}

// Values of transformers' T5Attention._relative_position_bucket with 32 buckets up to 128.
TEST(T5Buckets, MatchTheReference) {
  const T5Buckets both{.buckets = 32, .max_distance = 128, .bidirectional = true};
  const std::pair<int64_t, int> cases[] = {{0, 0},    {-1, 1},   {-7, 7},   {-8, 8},    {-11, 8},
                                           {-12, 9},  {-15, 9},  {-16, 10}, {-23, 11},  {-32, 12},
                                           {-64, 14}, {-90, 14}, {-91, 15}, {-128, 15}, {-1000, 15},
                                           {1, 17},   {7, 23},   {8, 24},   {20, 26},   {1000, 31}};
  for (const auto& [distance, bucket] : cases) {
    EXPECT_EQ(t5_bucket(distance, both), bucket) << distance;
  }
  const T5Buckets back{.buckets = 32, .max_distance = 128, .bidirectional = false};
  const std::pair<int64_t, int> causal[] = {{5, 0},     {0, 0},    {-1, 1},   {-15, 15},
                                            {-16, 16},  {-19, 17}, {-32, 21}, {-64, 26},
                                            {-127, 31}, {-500, 31}};
  for (const auto& [distance, bucket] : causal) {
    EXPECT_EQ(t5_bucket(distance, back), bucket) << distance;
  }
}

std::vector<float> alibi_slopes(int heads) {
  std::vector<float> slopes;
  for (int head = 0; head < heads; ++head) slopes.push_back(alibi_slope(head, heads));
  return slopes;
}

TEST(AlibiSlopes, ArePowersOfTwoThenTheOddOnesBetween) {
  EXPECT_THAT(alibi_slopes(8), testing::ElementsAre(0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f,
                                                    0.015625f, 0.0078125f, 0.00390625f));
  // 6 heads: four of them at 2^-2 … 2^-8, then 2^-1 and 2^-3 (the 1st and 3rd of eight).
  EXPECT_THAT(alibi_slopes(6),
              testing::ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f));
  EXPECT_THAT(alibi_slopes(1), testing::ElementsAre(0.00390625f));
}

TEST(RopeFrequencies, FallFromOneByTheBase) {
  const auto f = rope_frequencies(8, 10000);
  EXPECT_THAT(f, testing::ElementsAre(1, testing::FloatEq(0.1f), testing::FloatEq(0.01f),
                                      testing::FloatEq(0.001f)));
}

TEST(RopeAngles, EveryScalingMatchesDoublePrecision) {
  for (const auto& [scaling, name] : kEnumNames<RopeScaling>) {
    for (const int rotary_dim : {2, 16, 128}) {
      const RopeFormula formula{.rotary_dim = rotary_dim,
                                .base = 5000,
                                .scaling = scaling,
                                .factor = 4,
                                .original_positions = 96};
      const RopeAngles angles = rope_angles(formula);
      const RopeReference expected = rope_reference(formula);
      ASSERT_EQ(angles.frequencies.size(), expected.frequencies.size());
      for (size_t i = 0; i < angles.frequencies.size(); ++i) {
        EXPECT_NEAR(angles.frequencies[i], expected.frequencies[i], 2e-7)
            << name << ", " << rotary_dim << " columns, pair " << i;
      }
      EXPECT_FLOAT_EQ(angles.magnitude, static_cast<float>(expected.magnitude)) << name;
    }
  }
}

}  // namespace
}  // namespace heed
