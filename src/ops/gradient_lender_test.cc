#include "ops/gradient_lender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "heed/error.h"

namespace heed {
namespace {

WeightGradient gradient_of(int64_t rows, int64_t cols) { return {.value = {nullptr, rows, cols}}; }

TEST(GradientLender, LendsWhatWasMeasuredAndNoMore) {
  WeightGradient large = gradient_of(10, 16), small = gradient_of(1, 5), other = gradient_of(4, 16);
  GradientLender lender;
  const auto run = [&] {
    lender.lend(large);
    lender.lend(small);
    lender.take_back(large);
    lender.lend(other);  // in the large one's place
    lender.take_back(small);
    lender.take_back(other);
  };
  lender.measure();
  run();
  EXPECT_EQ(lender.bytes(), (160 + 16) * sizeof(float));
  EXPECT_EQ(large.value.data, nullptr);
  lender.provide();
  run();
  EXPECT_EQ(lender.bytes(), (160 + 16) * sizeof(float));
  // Another order needs more than there is.
  lender.lend(other);
  lender.lend(small);
  EXPECT_THROW(lender.lend(large), Error);
}

TEST(GradientLender, GradientsDoNotOverlap) {
  std::vector<WeightGradient> all;
  for (const int64_t cols : {3, 64, 1, 17}) all.push_back(gradient_of(7, cols));
  GradientLender lender;
  for (const bool real : {false, true}) {
    real ? lender.provide() : lender.measure();
    for (WeightGradient& g : all) lender.lend(g);
    for (size_t i = 0; real && i < all.size(); ++i) {
      std::fill_n(all[i].value.data, all[i].value.size(), static_cast<float>(i));
    }
    for (size_t i = 0; real && i < all.size(); ++i) {
      for (int64_t at = 0; at < all[i].value.size(); ++at) {
        ASSERT_EQ(all[i].value.data[at], static_cast<float>(i));
      }
    }
    for (WeightGradient& g : all) lender.take_back(g);
  }
}

TEST(GradientLender, AGradientHasItsMemoryUntilItIsBack) {
  WeightGradient g = gradient_of(2, 8);
  GradientLender lender;
  lender.measure();
  lender.lend(g);
  EXPECT_THROW(lender.provide(), Error);  // it was not given back
  lender.take_back(g);
  lender.provide();
  lender.lend(g);
  float* const place = g.value.data;
  ASSERT_NE(place, nullptr);
  g.written = true;
  lender.lend(g);  // a second contribution
  EXPECT_EQ(g.value.data, place);
  EXPECT_TRUE(g.written);
  lender.take_back(g);
  EXPECT_EQ(g.value.data, nullptr);
  EXPECT_FALSE(g.written);
  lender.take_back(g);  // nothing is there
}

}  // namespace
}  // namespace heed
