#include "data/objectives/masking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "data/batches/batch.h"

namespace heed {
namespace {

constexpr int32_t kMask = 1;

struct Masked {
  std::vector<int32_t> before, after, labels;
};

Masked masked(const Masking& masking, std::vector<int32_t> tokens, std::vector<uint8_t> fixed,
              uint64_t seed) {
  Masked result{tokens, tokens, std::vector<int32_t>(tokens.size())};
  Random random({.seed = seed});
  mask_tokens(masking, result.after, fixed, result.labels, random);
  return result;
}

std::vector<int32_t> counting(int32_t n) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 10);
  return ids;
}

TEST(Masking, SelectsAndLabelsFifteenPercent) {
  const Masking masking{.mask_id = kMask, .vocabulary = 1000};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<uint8_t> fixed(100);
    fixed[0] = fixed[99] = 1;
    const Masked m = masked(masking, counting(100), fixed, seed);
    int chosen = 0;
    for (size_t i = 0; i < 100; ++i) {
      if (m.labels[i] == kIgnoreLabel) {
        EXPECT_EQ(m.after[i], m.before[i]);
      } else {
        EXPECT_EQ(m.labels[i], m.before[i]);
        EXPECT_EQ(fixed[i], 0);
        ++chosen;
      }
    }
    EXPECT_EQ(chosen, 15) << seed;  // round(0.15 * 98)
  }
}

TEST(Masking, MasksEightyReplacesTenKeepsTen) {
  const Masking masking{.mask_id = kMask, .vocabulary = 1'000'000};
  int hidden = 0, changed = 0, kept = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Masked m = masked(masking, counting(100), std::vector<uint8_t>(100), seed);
    for (size_t i = 0; i < 100; ++i) {
      if (m.labels[i] == kIgnoreLabel) continue;
      if (m.after[i] == kMask) {
        ++hidden;
      } else if (m.after[i] == m.before[i]) {
        ++kept;
      } else {
        ++changed;
      }
    }
  }
  EXPECT_EQ(hidden + changed + kept, 15000);
  EXPECT_NEAR(hidden, 12000, 250);
  EXPECT_NEAR(changed, 1500, 200);
  EXPECT_NEAR(kept, 1500, 200);
}

TEST(Masking, SelectsTokensUniformly) {
  const Masking masking{.mask_id = kMask, .vocabulary = 1000};
  std::vector<int> chosen(20);
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const Masked m = masked(masking, counting(20), std::vector<uint8_t>(20), seed);
    for (size_t i = 0; i < 20; ++i) chosen[i] += m.labels[i] != kIgnoreLabel;
  }
  for (const int count : chosen) EXPECT_NEAR(count, 600, 120);  // 3 of 20
}

TEST(Masking, SelectsAtLeastOneToken) {
  const Masking masking{.mask_id = kMask, .vocabulary = 1000};
  const Masked one = masked(masking, {10}, {0}, 1);
  EXPECT_EQ(one.labels[0], 10);
  const Masked none = masked(masking, {10, 11}, {1, 1}, 1);
  EXPECT_THAT(none.labels, testing::Each(kIgnoreLabel));
}

TEST(Masking, MasksWholeWords) {
  // Words of 1, 2 and 3 pieces in turn; ids 10, 20, 21, 30, 31, 32.
  std::vector<uint8_t> begins(100, 1);
  begins[21] = begins[31] = begins[32] = 0;
  const Masking masking{
      .rate = 0.3, .whole_words = true, .mask_id = kMask, .vocabulary = 100, .begins_word = begins};
  std::vector<int32_t> text;
  for (int i = 0; i < 10; ++i) text.insert(text.end(), {10, 20, 21, 30, 31, 32});
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Masked m = masked(masking, text, std::vector<uint8_t>(text.size()), seed);
    int chosen = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      chosen += m.labels[i] != kIgnoreLabel;
      if (begins[static_cast<size_t>(text[i])] == 0) {
        ASSERT_EQ(m.labels[i] == kIgnoreLabel, m.labels[i - 1] == kIgnoreLabel) << seed;
      }
    }
    EXPECT_LE(chosen, 18);
    EXPECT_GE(chosen, 16);
  }
  // A single word longer than the budget is still selected, as a whole.
  EXPECT_THAT(masked(masking, {30, 31, 32}, {0, 0, 0}, 1).labels, testing::ElementsAre(30, 31, 32));
}

TEST(Masking, DependsOnlyOnTheSeed) {
  const Masking masking{.mask_id = kMask, .vocabulary = 1000};
  const std::vector<uint8_t> fixed(50);
  EXPECT_EQ(masked(masking, counting(50), fixed, 3).after,
            masked(masking, counting(50), fixed, 3).after);
  EXPECT_NE(masked(masking, counting(50), fixed, 3).after,
            masked(masking, counting(50), fixed, 4).after);
}

}  // namespace
}  // namespace heed
