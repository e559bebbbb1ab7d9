#include "text/metrics/ngrams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace heed {
namespace {

using testing::ElementsAre;

TEST(Ngrams, TheSameTokensHaveTheSameNumber) {
  NgramTable table;
  const int32_t a = table.extend(NgramTable::kEmpty, 7);
  const int32_t ab = table.extend(a, 8);
  EXPECT_EQ(table.extend(NgramTable::kEmpty, 7), a);
  EXPECT_EQ(table.extend(a, 8), ab);
  EXPECT_NE(table.extend(NgramTable::kEmpty, 8), ab);
  EXPECT_EQ(table.order(ab), 2);
  table.clear();
  EXPECT_EQ(table.size(), 1);
  EXPECT_EQ(table.extend(NgramTable::kEmpty, 9), 1);
}

TEST(Ngrams, CountsEqualAMapWhenTheTableGrows) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < 5000; ++i) tokens.push_back(i * i % 97);
  std::map<std::vector<uint32_t>, int> expected;
  for (size_t n = 1; n <= 3; ++n) {
    for (size_t i = 0; i + n <= tokens.size(); ++i) {
      const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(i);
      ++expected[std::vector<uint32_t>(begin, begin + static_cast<std::ptrdiff_t>(n))];
    }
  }
  NgramTable table;
  NgramCounts counts;
  count_ngrams(table, tokens, 3, counts);
  EXPECT_THAT(counts.totals, ElementsAre(5000, 4999, 4998));
  ASSERT_EQ(static_cast<size_t>(table.size()), expected.size() + 1);
  for (const auto& [ngram, count] : expected) {
    int32_t id = NgramTable::kEmpty;
    for (const uint32_t token : ngram) id = table.extend(id, token);
    ASSERT_EQ(counts.count.at(static_cast<size_t>(id)), count);
  }
}

TEST(Ngrams, MatchesAreClippedToTheReference) {
  NgramTable table;
  NgramCounts hypothesis, reference;
  count_ngrams(table, {1, 1, 1, 2}, 2, hypothesis);
  count_ngrams(table, {1, 1, 2, 3}, 2, reference);
  EXPECT_THAT(count_matches(table, hypothesis, reference), ElementsAre(3, 2));
}

TEST(Ngrams, NumbersWords) {
  WordNumbers numbers;
  EXPECT_THAT(numbers({"a", "b", "a"}), ElementsAre(0, 1, 0));
  EXPECT_EQ(numbers("b"), 1u);
}

}  // namespace
}  // namespace heed
