// Each schedule at steps whose rates can be worked out by hand.
#include "train/optimizer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

TEST(Schedule, NoamIsThePapersFormula) {
  const Schedule s({.kind = ScheduleKind::noam, .warmup_steps = 4000}, 1, 512);
  // 512^-0.5 = 0.0441942; at the peak 4000^-0.5 = 0.0158114.
  EXPECT_NEAR(s.learning_rate(1), 0.04419417382 * std::pow(4000, -1.5), 1e-15);
  EXPECT_NEAR(s.learning_rate(4000), 0.000698771, 1e-9);
  EXPECT_NEAR(s.learning_rate(16000), 0.000698771 / 2, 1e-9);
  EXPECT_LT(s.learning_rate(3999), s.learning_rate(4000));
  EXPECT_LT(s.learning_rate(4001), s.learning_rate(4000));
}

TEST(Schedule, InverseSquareRootFallsFromThePeak) {
  const Schedule s(
      {.kind = ScheduleKind::inverse_sqrt, .warmup_steps = 100, .warmup_learning_rate = 1e-7},
      0.005, 128);
  EXPECT_NEAR(s.learning_rate(50), (0.005 + 1e-7) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(s.learning_rate(100), 0.005);
  EXPECT_NEAR(s.learning_rate(400), 0.0025, 1e-12);
  EXPECT_NEAR(s.learning_rate(10000), 0.0005, 1e-12);
}

TEST(Schedule, LinearAndCosineArriveAndStay) {
  for (const ScheduleKind kind : {ScheduleKind::linear, ScheduleKind::cosine}) {
    const Schedule s(
        {.kind = kind, .warmup_steps = 100, .steps = 1100, .final_learning_rate = 1e-4}, 1e-3, 8);
    EXPECT_DOUBLE_EQ(s.learning_rate(10), 1e-4);
    EXPECT_DOUBLE_EQ(s.learning_rate(100), 1e-3);
    EXPECT_NEAR(s.learning_rate(600), 5.5e-4, 1e-12);  // half way, both
    EXPECT_NEAR(s.learning_rate(1100), 1e-4, 1e-15);
    EXPECT_NEAR(s.learning_rate(5000), 1e-4, 1e-15);
  }
  const Schedule cosine({.kind = ScheduleKind::cosine, .steps = 300}, 1, 8);
  EXPECT_NEAR(cosine.learning_rate(100), 0.75, 1e-12);  // (1 + cos 60°) / 2
  const Schedule linear({.kind = ScheduleKind::linear, .steps = 300}, 1, 8);
  EXPECT_NEAR(linear.learning_rate(100), 2.0 / 3, 1e-12);
}

TEST(Schedule, ConstantOnlyWarmsUp) {
  const Schedule s({.kind = ScheduleKind::constant, .warmup_steps = 4}, 0.1, 8);
  EXPECT_DOUBLE_EQ(s.learning_rate(1), 0.025);
  EXPECT_DOUBLE_EQ(s.learning_rate(4), 0.1);
  EXPECT_DOUBLE_EQ(s.learning_rate(1000), 0.1);
}

}  // namespace
}  // namespace heed
