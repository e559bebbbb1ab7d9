#include "data/objectives/span_corruption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "data/batches/tokenizer_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;

using Ids = std::vector<int32_t>;
using Mask = std::vector<uint8_t>;

int64_t spans_of(const Mask& mask) {
  int64_t spans = 0;
  for (size_t i = 0; i < mask.size(); ++i) spans += mask[i] == 1 && (i == 0 || mask[i - 1] == 0);
  return spans;
}

// Figure 2 of the paper: Thank you [for inviting] me to your party [last] week .
TEST(SpanCorruption, EqualsTheExampleOfThePaper) {
  const Ids text{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const Mask mask{0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0};
  Ids input, target;
  corrupt_spans(text, mask, Ids{100, 99, 98}, input, target);
  EXPECT_THAT(input, ElementsAre(1, 2, 100, 5, 6, 7, 8, 99, 10, 11));
  EXPECT_THAT(target, ElementsAre(100, 3, 4, 99, 9, 98));
}

TEST(SpanCorruption, NeedsNoLastSentinelAfterASpan) {
  Ids input, target;
  corrupt_spans(Ids{1, 2, 3, 4, 5}, Mask{0, 1, 0, 1, 1}, Ids{100, 99}, input, target);
  EXPECT_THAT(input, ElementsAre(1, 100, 3, 99));
  EXPECT_THAT(target, ElementsAre(100, 2, 99, 4, 5));
}

// From the published code by hand: round(n * 0.15) tokens, round(tokens / 3) spans; halves to even.
TEST(SpanCorruption, CountsEqualThePublishedCode) {
  const SpanCorruption t5;
  const auto counts = [&](int64_t n) {
    const auto c = t5.counts(n);
    return std::pair(c.noise_tokens, c.spans);
  };
  EXPECT_EQ(counts(1), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(counts(2), std::pair(int64_t{1}, int64_t{1}));      // round(0.3) = 0, at least 1
  EXPECT_EQ(counts(10), std::pair(int64_t{2}, int64_t{1}));     // 1.5 → 2; 0.67 → 1
  EXPECT_EQ(counts(50), std::pair(int64_t{8}, int64_t{3}));     // 7.5 → 8; 2.67 → 3
  EXPECT_EQ(counts(512), std::pair(int64_t{77}, int64_t{26}));  // 76.8 → 77; 25.67 → 26
  // T5's own numbers: 568 tokens make an input of 512 and a target of 114.
  EXPECT_EQ(t5.longest_text(512), 568);
  EXPECT_EQ(t5.input_rows(568), 512);
  EXPECT_EQ(t5.target_rows(568), 114);
}

TEST(SpanCorruption, MaskHasTheCountsAndEndsInASpan) {
  for (const SpanCorruption corruption : {SpanCorruption{}, SpanCorruption{0.5, 1},
                                          SpanCorruption{0.9, 2}, SpanCorruption{0.15, 20}}) {
    Random random({.seed = 11});
    for (int64_t length = 1; length < 200; ++length) {
      const Mask mask = span_mask(corruption, length, random);
      const auto counts = corruption.counts(length);
      ASSERT_EQ(std::ssize(mask), length);
      ASSERT_EQ(std::count(mask.begin(), mask.end(), 1), counts.noise_tokens) << length;
      ASSERT_EQ(spans_of(mask), counts.spans) << length;
      ASSERT_EQ(mask.front(), 0);
      ASSERT_EQ(mask.back(), length > 1) << length;
    }
  }
}

// 20 tokens: 3 of them in 1 span. 40: 6 in 2, so the first one has 1 … 5, equally likely.
TEST(SpanCorruption, SpanLengthsAreUniform) {
  std::map<int64_t, int> first_lengths;
  Random random({.seed = 12});
  const int rounds = 10000;
  for (int round = 0; round < rounds; ++round) {
    const Mask mask = span_mask({}, 40, random);
    const auto begin = std::find(mask.begin(), mask.end(), 1);
    ++first_lengths[std::find(begin, mask.end(), 0) - begin];
  }
  ASSERT_EQ(first_lengths.size(), 5u);
  for (const auto& [length, count] : first_lengths) EXPECT_NEAR(count, rounds / 5, 200) << length;
}

TEST(SpanCorruption, LosesNoToken) {
  Random random({.seed = 13});
  Ids sentinels;
  for (int32_t i = 0; i < 100; ++i) sentinels.push_back(1000 - i);
  for (int64_t length = 2; length < 300; length += 7) {
    Ids text(static_cast<size_t>(length));
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<int32_t>(i);
    Ids input, target;
    corrupt_spans(text, span_mask({}, length, random), sentinels, input, target);
    EXPECT_EQ(std::ssize(input) + 1, SpanCorruption{}.input_rows(length));
    EXPECT_EQ(std::ssize(target) + 1, SpanCorruption{}.target_rows(length));
    Ids back;
    for (const int32_t id : input) {
      if (id < 900) {
        back.push_back(id);
        continue;
      }
      auto place = std::find(target.begin(), target.end(), id) + 1;
      while (place != target.end() && *place < 900) back.push_back(*place++);
    }
    EXPECT_EQ(back, text);
  }
}

TEST(SpanCorruption, FindsSentinels) {
  const TestingTokenizer tokenizer({"a", "<extra_id_1>", "<extra_id_0>", "<extra_id_3>"});
  EXPECT_THAT(find_sentinels(tokenizer), ElementsAre(8, 7));
}

}  // namespace
}  // namespace heed
