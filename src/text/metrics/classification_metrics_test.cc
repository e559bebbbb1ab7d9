#include <gtest/gtest.h>

#include <cmath>

#include "heed/error.h"
#include "heed/metrics.h"

namespace heed {
namespace {

// scikit-learn's example of classification_report: 0 1 2 2 2 against 0 0 2 2 1.
TEST(Classification, EqualsScikitLearn) {
  const ClassificationScore score =
      classification({"0", "1", "2", "2", "2"}, {"0", "0", "2", "2", "1"});
  EXPECT_DOUBLE_EQ(score.accuracy, 0.6);
  EXPECT_NEAR(score.macro.precision, 0.5, 1e-12);
  EXPECT_NEAR(score.macro.recall, (1 + 0 + 2.0 / 3) / 3, 1e-12);
  EXPECT_NEAR(score.macro.f1, (2.0 / 3 + 0 + 0.8) / 3, 1e-12);
  EXPECT_NEAR(score.weighted.precision, 0.7, 1e-12);
  EXPECT_NEAR(score.weighted.f1, (2.0 / 3 + 3 * 0.8) / 5, 1e-12);
  EXPECT_DOUBLE_EQ(score.micro.f1, 0.6);
  ASSERT_EQ(score.labels.size(), 3u);
  EXPECT_EQ(score.labels[2].label, "2");
  EXPECT_EQ(score.labels[2].gold, 3);
  EXPECT_NEAR(score.labels[2].f1, 0.8, 1e-12);
  EXPECT_EQ(score.labels[1].f1, 0);
}

TEST(Classification, MatthewsOfTwoLabelsIsTheBinaryFormula) {
  // tp 3, tn 2, fp 1, fn 2
  const ClassificationScore score = classification({"1", "1", "1", "1", "1", "0", "0", "0"},
                                                   {"1", "1", "1", "0", "0", "0", "0", "1"});
  EXPECT_NEAR(score.matthews, (3 * 2 - 1 * 2) / std::sqrt(4.0 * 5 * 3 * 4), 1e-12);
}

TEST(Classification, MatthewsAtItsLimits) {
  EXPECT_NEAR(classification({"a", "b", "c"}, {"a", "b", "c"}).matthews, 1, 1e-12);
  EXPECT_NEAR(classification({"a", "b"}, {"b", "a"}).matthews, -1, 1e-12);
  EXPECT_EQ(classification({"a", "b"}, {"a", "a"}).matthews, 0);  // nothing to correlate
}

TEST(Classification, CountsLabelsOfThePredictionsOnly) {
  const ClassificationScore score = classification({"a", "a"}, {"a", "b"});
  EXPECT_EQ(score.labels.size(), 2u);
  EXPECT_NEAR(score.macro.f1, (2.0 / 3 + 0) / 2, 1e-12);
}

TEST(Classification, RejectsInvalidInput) {
  EXPECT_THROW(classification({"a"}, {"a", "b"}), Error);
  EXPECT_THROW(classification({}, {}), Error);
}

TEST(Perplexity, IsTheInverseOfTheMeanProbability) {
  const std::vector<double> logs = {std::log(0.5), std::log(0.125)};
  const Perplexity result = perplexity(logs);
  EXPECT_NEAR(result.perplexity, 4, 1e-12);
  EXPECT_NEAR(result.cross_entropy, std::log(4), 1e-12);
  EXPECT_EQ(result.tokens, 2);
}

TEST(Perplexity, RejectsInvalidLogProbabilities) {
  EXPECT_THROW(perplexity({}), Error);
  EXPECT_THROW(perplexity(std::vector<double>{0.5}), Error);
  EXPECT_THROW(perplexity(std::vector<double>{NAN}), Error);
  EXPECT_TRUE(std::isinf(perplexity(std::vector<double>{-INFINITY}).perplexity));
}

}  // namespace
}  // namespace heed
