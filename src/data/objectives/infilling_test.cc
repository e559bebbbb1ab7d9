#include "data/objectives/infilling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace heed {
namespace {

using testing::ElementsAre;

using Ids = std::vector<int32_t>;
constexpr int32_t kMask = 1;

Ids counting(int32_t n) {
  Ids ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 10);
  return ids;
}

TEST(PermuteSentences, KeepsSentencesWhole) {
  const Ids text{1, 1, 2, 3, 3, 3}, starts{2, 3};
  std::map<Ids, int> orders;
  Random random({.seed = 1});
  for (int i = 0; i < 6000; ++i) ++orders[permute_sentences(text, starts, 1, random)];
  ASSERT_EQ(orders.size(), 6u);  // every order of three, equally often
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(orders.count({2, 3, 3, 3, 1, 1}), 1u);
}

TEST(PermuteSentences, MovesOnlyTheGivenShare) {
  Ids text = counting(10), starts;
  for (int32_t i = 1; i < 10; ++i) starts.push_back(i);
  Random random({.seed = 2});
  for (int round = 0; round < 200; ++round) {
    const Ids permuted = permute_sentences(text, starts, 0.25, random);
    int moved = 0;
    for (size_t i = 0; i < 10; ++i) moved += permuted[i] != text[i];
    EXPECT_LE(moved, 3);  // ceil(2.5)
    Ids sorted = permuted;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, text);
  }
  EXPECT_EQ(permute_sentences(text, {}, 1, random), text);
}

TEST(Infill, ReplacesSpansByOneMaskEach) {
  Random random({.seed = 3});
  double kept = 0, masks = 0;
  constexpr int kRounds = 2000, kLength = 100;
  for (int round = 0; round < kRounds; ++round) {
    const Ids noised = infill({.mask_id = kMask}, counting(kLength), random);
    int32_t last = 0;
    for (const int32_t id : noised) {
      if (id == kMask) {
        ++masks;
        continue;
      }
      ++kept;
      ASSERT_GT(id, last);  // the order stays
      last = id;
    }
  }
  // 30 of 100 words are in spans; overlaps and ends keep slightly more.
  EXPECT_GT(kept / kRounds, 69.9);
  EXPECT_LT(kept / kRounds, 76);
  // Spans of 3 on average, including empty ones: about 30 / 3 masks, fewer where spans were merged.
  EXPECT_GT(masks / kRounds, 8.5);
  EXPECT_LT(masks / kRounds, 11);
}

TEST(Infill, CoversWholeWords) {
  std::vector<uint8_t> begins(40, 1);
  begins[21] = begins[22] = 0;
  Ids text;
  for (int i = 0; i < 20; ++i) text.insert(text.end(), {20, 21, 22, 30});
  Random random({.seed = 4});
  for (int round = 0; round < 300; ++round) {
    const Ids noised = infill({.mask_id = kMask, .begins_word = begins}, text, random);
    for (size_t i = 0; i < noised.size(); ++i) {
      // Inserted masks may be inside a word: skip them.
      if (noised[i] != 22) continue;
      Ids before;
      for (size_t j = i; j-- > 0 && before.size() < 2;) {
        if (noised[j] != kMask) before.push_back(noised[j]);
      }
      ASSERT_THAT(before, ElementsAre(21, 20));
    }
  }
}

TEST(Infill, KeepsAnEmptyText) {
  Random random({.seed = 5});
  EXPECT_TRUE(infill({.mask_id = kMask}, {}, random).empty());
  EXPECT_EQ(infill({.rate = 0, .mask_id = kMask}, counting(5), random), counting(5));
  for (int round = 0; round < 100; ++round) {
    EXPECT_THAT(infill({.rate = 1, .mask_id = kMask}, counting(1), random), ElementsAre(kMask));
  }
}

TEST(Poisson, HasItsMeanAndVariance) {
  Random random({.seed = 6});
  constexpr int kDraws = 20000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const auto n = static_cast<double>(draw_poisson(3, random));
    sum += n;
    squares += n * n;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 3, 0.06);
  EXPECT_NEAR(squares / kDraws - mean * mean, 3, 0.2);
}

}  // namespace
}  // namespace heed
