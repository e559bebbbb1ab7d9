#include "infer/search/hypotheses.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

TEST(LengthPenalty, PowerAndGnmt) {
  SearchOptions o;
  o.length_penalty = 0.6;
  EXPECT_DOUBLE_EQ(penalised(-4, 8, o), -4 / std::pow(8, 0.6));
  o.length_penalty_rule = LengthPenaltyRule::gnmt;
  EXPECT_DOUBLE_EQ(penalised(-4, 7, o), -4 / std::pow(2, 0.6));
  o.length_penalty = 0;
  EXPECT_DOUBLE_EQ(penalised(-4, 7, o), -4);
}

class HypothesesTest : public testing::Test {
 protected:
  HypothesesTest() { options_.beam = 2, options_.nbest = 2; }

  Hypotheses filled() {
    Hypotheses h(options_, 10);
    h.add({.ids = {1}, .sum = -2}, 2);  // scores -1
    h.add({.ids = {2}, .sum = -6}, 3);  // -2
    return h;
  }

  SearchOptions options_;
};

TEST_F(HypothesesTest, KeepsTheBest) {
  Hypotheses h = filled();
  EXPECT_FALSE(h.would_keep(-9, 3));
  EXPECT_FALSE(h.would_keep(-6, 3));  // only better ones
  EXPECT_TRUE(h.would_keep(-3, 2));
  h.add({.ids = {3}, .sum = -9}, 3);  // -3: too bad
  h.add({.ids = {4}, .sum = -3}, 2);  // -1.5: drives out 2
  const auto best = std::move(h).take_best(2);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].ids.front(), 1);
  EXPECT_EQ(best[1].ids.front(), 4);
  EXPECT_DOUBLE_EQ(best[1].score, -1.5);
}

TEST_F(HypothesesTest, OfEqualOnesTheLastComesFirst) {
  Hypotheses h(options_, 10);
  h.add({.ids = {1}, .sum = -2}, 2);
  h.add({.ids = {2}, .sum = -2}, 2);
  EXPECT_EQ(std::move(h).take_best(1).front().ids.front(), 2);
}

TEST_F(HypothesesTest, IsNotDoneBeforeItIsFull) {
  options_.early_stopping = EarlyStopping::yes;
  Hypotheses h(options_, 10);
  h.add({.ids = {1}, .sum = -2}, 2);
  EXPECT_FALSE(h.is_done(-100, 3));
}

TEST_F(HypothesesTest, EarlyStoppingDecidesWhatMayStillCome) {
  options_.early_stopping = EarlyStopping::yes;
  EXPECT_TRUE(filled().is_done(-1, 4));
  options_.early_stopping = EarlyStopping::no;  // -7 / 4 is better than -2, -9 / 4 is not
  EXPECT_FALSE(filled().is_done(-7, 4));
  EXPECT_TRUE(filled().is_done(-9, 4));
  options_.early_stopping = EarlyStopping::never;  // but -9 / 10 would be
  EXPECT_FALSE(filled().is_done(-9, 4));
  EXPECT_TRUE(filled().is_done(-21, 4));
}

}  // namespace
}  // namespace heed
