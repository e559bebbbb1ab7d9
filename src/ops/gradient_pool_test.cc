#include "ops/gradient_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "heed/error.h"

namespace heed {
namespace {

WeightGradient gradient_of(int64_t rows, int64_t cols) { return {.value = {nullptr, rows, cols}}; }

TEST(GradientPool, ProvidesTheMeasuredSizeAndNoMore) {
  WeightGradient large = gradient_of(10, 16), small = gradient_of(1, 5), other = gradient_of(4, 16);
  GradientPool pool;
  const auto run = [&] {
    pool.acquire(large);
    pool.acquire(small);
    pool.release(large);
    pool.acquire(other);  // in the large one's place
    pool.release(small);
    pool.release(other);
  };
  pool.measure();
  run();
  EXPECT_EQ(pool.bytes(), (160 + 16) * sizeof(float));
  EXPECT_EQ(large.value.data, nullptr);
  pool.provide(pool.bytes());
  run();
  EXPECT_EQ(pool.bytes(), (160 + 16) * sizeof(float));
  // Another order needs more than there is.
  pool.acquire(other);
  pool.acquire(small);
  EXPECT_THROW(pool.acquire(large), Error);
}

TEST(GradientPool, GradientsDoNotOverlap) {
  std::vector<WeightGradient> all;
  for (const int64_t cols : {3, 64, 1, 17}) all.push_back(gradient_of(7, cols));
  GradientPool pool;
  for (const bool real : {false, true}) {
    real ? pool.provide(pool.bytes()) : pool.measure();
    for (WeightGradient& g : all) pool.acquire(g);
    for (size_t i = 0; real && i < all.size(); ++i) {
      std::fill_n(all[i].value.data, all[i].value.size(), static_cast<float>(i));
    }
    for (size_t i = 0; real && i < all.size(); ++i) {
      for (int64_t at = 0; at < all[i].value.size(); ++at) {
        ASSERT_EQ(all[i].value.data[at], static_cast<float>(i));
      }
    }
    for (WeightGradient& g : all) pool.release(g);
  }
}

TEST(GradientPool, AGradientKeepsItsBufferUntilReleased) {
  WeightGradient g = gradient_of(2, 8);
  GradientPool pool;
  pool.measure();
  pool.acquire(g);
  EXPECT_THROW(pool.provide(pool.bytes()), Error);  // still in use
  pool.release(g);
  pool.provide(pool.bytes());
  pool.acquire(g);
  float* const place = g.value.data;
  ASSERT_NE(place, nullptr);
  g.written = true;
  pool.acquire(g);  // a second contribution
  EXPECT_EQ(g.value.data, place);
  EXPECT_TRUE(g.written);
  pool.release(g);
  EXPECT_EQ(g.value.data, nullptr);
  EXPECT_FALSE(g.written);
  pool.release(g);  // nothing is there
}

}  // namespace
}  // namespace heed
