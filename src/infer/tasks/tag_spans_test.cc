#include "infer/tasks/tag_spans.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

const std::vector<std::string> kLabels = {"O", "B-LOC", "I-LOC", "B-PER", "I-PER", "NOUN"};

// One part of four bytes for each label; "0-8 LOC 0.5" for each span.
std::vector<std::string> spans(const std::vector<int>& labels,
                               const std::vector<double>& probabilities = {}) {
  std::vector<TagPart> parts;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto begin = static_cast<int64_t>(4 * i);
    parts.push_back(
        {{begin, begin + 3}, labels[i], probabilities.empty() ? 0.5 : probabilities[i]});
  }
  std::vector<std::string> texts;
  for (const TaggedSpan& span : tag_spans(parts, kLabels)) {
    texts.push_back(std::to_string(span.span.begin) + "-" + std::to_string(span.span.end) + " " +
                    span.name + " " + std::to_string(span.probability).substr(0, 4));
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(TagSpans, JoinsWhatBelongsTogether) {
  EXPECT_EQ(spans({0, 1, 2, 2, 0}), (Texts{"4-15 LOC 0.50"}));
}

TEST(TagSpans, BeginsAnewAtBAndAtAnotherName) {
  EXPECT_EQ(spans({1, 1, 2, 4}), (Texts{"0-3 LOC 0.50", "4-11 LOC 0.50", "12-15 PER 0.50"}));
}

TEST(TagSpans, EndsAtOutside) {
  EXPECT_EQ(spans({2, 0, 2}), (Texts{"0-3 LOC 0.50", "8-11 LOC 0.50"}));
  EXPECT_EQ(spans({0, 0}), Texts{});
  EXPECT_EQ(spans({}), Texts{});
}

TEST(TagSpans, TakesTheMeanOfTheProbabilities) {
  EXPECT_EQ(spans({1, 2, 2}, {0.25, 0.5, 0.75}), (Texts{"0-11 LOC 0.50"}));
  EXPECT_EQ(spans({1, 2}, {1.0, 0.5}), (Texts{"0-7 LOC 0.75"}));
}

TEST(TagSpans, DoesNotJoinWordsOfLabelsWithoutPrefix) {
  EXPECT_EQ(spans({5, 5}), (Texts{"0-3 NOUN 0.50", "4-7 NOUN 0.50"}));
}

TEST(TagSpans, JoinsTheTokensOfOneWord) {
  const std::vector<TagPart> parts = {{{0, 3}, 5, 0.5}, {{3, 5}, 5, 0.5}, {{6, 9}, 5, 0.5}};
  const std::vector<TaggedSpan> joined = tag_spans(parts, kLabels);
  ASSERT_EQ(joined.size(), 2U);
  EXPECT_EQ(joined[0].span.begin, 0);
  EXPECT_EQ(joined[0].span.end, 5);
}

}  // namespace
}  // namespace heed
