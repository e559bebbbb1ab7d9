#include <gtest/gtest.h>

#include "heed/error.h"
#include "heed/metrics.h"

namespace heed {
namespace {

// Spans of `tags`, counted by comparing the sentence with itself.
int64_t spans(const std::vector<std::string>& tags) { return span_f1({tags}, {tags}).gold; }

TEST(SpanF1, CountsWholeSpansWithTheirTypes) {
  const SpanScore score = span_f1({{"B-PER", "I-PER", "O", "B-LOC"}, {"B-ORG", "O"}},
                                  {{"B-PER", "I-PER", "O", "B-ORG"}, {"B-ORG", "I-ORG"}});
  EXPECT_EQ(score.gold, 3);
  EXPECT_EQ(score.predicted, 3);
  EXPECT_EQ(score.correct, 1);
  EXPECT_NEAR(score.f1, 100.0 / 3, 1e-9);
  EXPECT_NEAR(score.accuracy, 100.0 * 4 / 6, 1e-9);
  ASSERT_EQ(score.types.size(), 3u);
  EXPECT_EQ(score.types[2].label, "PER");
  EXPECT_EQ(score.types[2].f1, 100);
}

TEST(SpanF1, PrintsTheLinesOfConlleval) {
  EXPECT_EQ(span_f1({{"B-PER", "O", "B-LOC"}}, {{"B-PER", "O", "O"}}).text(),
            "processed 3 tokens with 2 phrases; found: 1 phrases; correct: 1.\n"
            "accuracy:  66.67%; precision: 100.00%; recall:  50.00%; FB1:  66.67\n"
            "              LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  0\n"
            "              PER: precision: 100.00%; recall: 100.00%; FB1: 100.00  1\n");
}

TEST(SpanF1, ReadsEveryScheme) {
  EXPECT_EQ(spans({"I-X", "I-X", "B-X", "O", "I-X"}), 3);                       // IOB1
  EXPECT_EQ(spans({"B-X", "I-X", "B-X", "O", "B-X"}), 3);                       // IOB2
  EXPECT_EQ(spans({"I-X", "E-X", "E-X", "O", "E-X"}), 3);                       // IOE2
  EXPECT_EQ(spans({"B-X", "E-X", "S-X", "O", "S-X", "B-X", "I-X", "E-X"}), 4);  // IOBES
  EXPECT_EQ(spans({"B-X", "L-X", "U-X", "O", "U-X"}), 3);                       // BILOU
  EXPECT_EQ(spans({"I-X", "I-Y", "O"}), 2);                                     // the type changes
  EXPECT_EQ(spans({"O", "O"}), 0);
}

TEST(SpanF1, ComparesDifferentSchemes) {
  const SpanScore score = span_f1({{"I-X", "I-X", "O"}}, {{"B-X", "E-X", "O"}});
  EXPECT_EQ(score.correct, 1);
  EXPECT_NEAR(score.accuracy, 100.0 / 3, 1e-9);
}

TEST(SpanF1, ASentenceEndsItsSpans) {
  EXPECT_EQ(span_f1({{"B-X"}, {"I-X"}}, {{"B-X"}, {"I-X"}}).correct, 2);
  EXPECT_EQ(span_f1({{"B-X", "I-X"}}, {{"B-X", "B-X"}}).correct, 0);
}

TEST(SpanF1, TypesMayHaveDashes) {
  EXPECT_EQ(span_f1({{"B-A-B"}}, {{"B-A-C"}}).correct, 0);
  EXPECT_EQ(span_f1({{"B-A-B"}}, {{"B-A-B"}}).types.front().label, "A-B");
}

TEST(SpanF1, RejectsInvalidInput) {
  EXPECT_THROW(span_f1({{"O"}}, {{"O", "O"}}), Error);
  EXPECT_THROW(span_f1({{"O"}}, {}), Error);
  EXPECT_THROW(span_f1({}, {}), Error);
}

}  // namespace
}  // namespace heed
