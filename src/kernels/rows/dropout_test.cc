#include "kernels/rows/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/simd/each_target_testing.h"
#include "kernels/simd/kernel_testing.h"

namespace heed::kernels {
namespace {

// The rule of dropout.h, one element at a time.
struct Reference {
  Dropout dropout;
  int threshold = static_cast<int>(std::lround(dropout.p * 65536.0));

  float scale() const { return static_cast<float>(65536.0 / (65536 - threshold)); }

  bool kept(uint64_t element) const {
    const uint64_t group = element / 128, j = element % 128, half = j / 16;
    const uint32_t word = random_block(dropout.key, 16 * group + j % 16)[half / 2];
    const uint32_t bits = half % 2 == 0 ? word & 0xFFFF : word >> 16;
    return static_cast<int>(bits) >= threshold;
  }
};

const Dropout kDropout{{.seed = 0x123456789ABCDEF0, .step = 17, .site = 3}, 0.3f};

TEST(Dropout, FactorsFollowTheRule) {
  for_each_target([] {
    for (const Dropout& dropout : {kDropout, Dropout{{1, 2, 3}, 0.1f}, Dropout{{1, 2, 3}, 0.5f}}) {
      const Reference reference{dropout};
      // The second group needs the upper 32 bits of Philox's counter, and carries into them.
      for (const uint64_t group : {uint64_t{0}, uint64_t{0x0FFFFFFF}}) {
        for (const int64_t n : kOddSizes) {
          Unaligned factors(std::vector<float>(n, -1.0f));
          dropout_factors(dropout, group, factors.data(), n);
          for (int64_t i = 0; i < n; ++i) {
            const float expected = reference.kept(group * 128 + i) ? reference.scale() : 0.0f;
            ASSERT_EQ(factors.data()[i], expected) << "element " << i << " of " << n;
          }
        }
      }
    }
  });
}

TEST(Dropout, ScalesSurvivorsAndClearsTheRest) {
  for_each_target([] {
    const Reference reference{kDropout};
    for (const int64_t n : kOddSizes) {
      const std::vector<float> x = random_floats(n, 1);
      Unaligned from(x), to(x), in_place(x);
      dropout(kDropout, 256, from.data(), to.data(), n);
      dropout(kDropout, 256, in_place.data(), in_place.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(to.data()[i], reference.kept(256 + i) ? x[i] * reference.scale() : 0.0f);
      }
      EXPECT_EQ(in_place.values(), to.values());
      EXPECT_EQ(from.values(), x);
    }
  });
}

TEST(Dropout, AddKeepsTheResidual) {
  for_each_target([] {
    const Reference reference{kDropout};
    for (const int64_t n : kOddSizes) {
      const std::vector<float> x = random_floats(n, 1), residual = random_floats(n, 2);
      Unaligned y(std::vector<float>(n, -1.0f)), onto_x(x), onto_residual(residual), doubled(x);
      dropout_add(kDropout, 0, x.data(), residual.data(), y.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        const float added = reference.kept(i) ? x[i] * reference.scale() : 0.0f;
        // Fused on some instruction sets, hence not to the bit.
        ASSERT_NEAR(y.data()[i], residual[i] + added, 4e-7f * (std::abs(residual[i]) + 2));
        if (added == 0) {
          ASSERT_EQ(y.data()[i], residual[i]);
        }
      }
      dropout_add(kDropout, 0, onto_x.data(), residual.data(), onto_x.data(), n);
      dropout_add(kDropout, 0, x.data(), onto_residual.data(), onto_residual.data(), n);
      dropout_add(kDropout, 0, doubled.data(), doubled.data(), doubled.data(), n);
      EXPECT_EQ(onto_x.values(), y.values());
      EXPECT_EQ(onto_residual.values(), y.values());
    }
  });
}

TEST(Dropout, SplitAtAGroupEqualsTheWhole) {
  for_each_target([] {
    const int64_t n = 1000;
    const std::vector<float> x = random_floats(n, 1), residual = random_floats(n, 2);
    for (const int64_t cut : {128, 512, 896}) {
      std::vector<float> whole(n), parts(n);
      dropout(kDropout, 128, x.data(), whole.data(), n);
      dropout(kDropout, 128, x.data(), parts.data(), cut);
      dropout(kDropout, 128 + cut, &x[cut], &parts[cut], n - cut);
      EXPECT_EQ(parts, whole);
      dropout_add(kDropout, 128, x.data(), residual.data(), whole.data(), n);
      dropout_add(kDropout, 128, x.data(), residual.data(), parts.data(), cut);
      dropout_add(kDropout, 128 + cut, &x[cut], &residual[cut], &parts[cut], n - cut);
      EXPECT_EQ(parts, whole);
    }
  });
}

TEST(Dropout, OfZeroChangesNothing) {
  for_each_target([] {
    const Dropout none{kDropout.key, 0.0f};
    for (const int64_t n : kOddSizes) {
      const std::vector<float> x = random_floats(n, 1), residual = random_floats(n, 2);
      Unaligned y(x), in_place(x), sum(x), factors(x);
      dropout(none, 0, x.data(), y.data(), n);
      dropout(none, 0, in_place.data(), in_place.data(), n);
      dropout_add(none, 0, x.data(), residual.data(), sum.data(), n);
      dropout_factors(none, 0, factors.data(), n);
      EXPECT_EQ(y.values(), x);
      EXPECT_EQ(in_place.values(), x);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(sum.data()[i], x[i] + residual[i]);
        ASSERT_EQ(factors.data()[i], 1.0f);
      }
    }
  });
}

TEST(Dropout, MeanOfFactorsIsOne) {
  const int64_t n = 1 << 20;
  std::vector<float> factors(n);
  for (const float p : {0.1f, 0.5f, 0.9f}) {
    dropout_factors({{99, 1, 2}, p}, 0, factors.data(), n);
    double sum = 0, kept = 0;
    for (const float factor : factors) sum += factor, kept += factor != 0;
    // Five standard deviations of a binomial.
    EXPECT_NEAR(kept / n, 1 - p, 5 * std::sqrt(p * (1 - p) / n)) << p;
    EXPECT_NEAR(sum / n, 1, 5 * std::sqrt(p / (1 - p) / n)) << p;
  }
}

TEST(Dropout, NearOneStaysFinite) {
  std::vector<float> factors(4096);
  dropout_factors({{1, 2, 3}, std::nextafter(1.0f, 0.0f)}, 0, factors.data(), 4096);
  for (const float factor : factors) EXPECT_TRUE(factor == 0 || factor == 65536);
}

TEST(Dropout, DropsInfinitiesToo) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x(256, infinity), residual(256, 2.0f);
  std::vector<float> y(256), sum(256);
  dropout(kDropout, 0, x.data(), y.data(), 256);
  dropout_add(kDropout, 0, x.data(), residual.data(), sum.data(), 256);
  for (int i = 0; i < 256; ++i) {
    EXPECT_TRUE(y[i] == 0 || y[i] == infinity);
    EXPECT_EQ(sum[i], y[i] == 0 ? 2.0f : infinity);
  }
}

}  // namespace
}  // namespace heed::kernels
