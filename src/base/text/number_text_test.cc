#include "base/text/number_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace heed {
namespace {

TEST(NumberText, SignificantIsPrintfsG) {
  EXPECT_EQ(significant(0.0003), "0.0003");
  EXPECT_EQ(significant(0.000015), "1.5e-05");
  EXPECT_EQ(significant(1234.56), "1235");
  EXPECT_EQ(significant(123456), "1.235e+05");
  EXPECT_EQ(significant(2.0), "2");
  EXPECT_EQ(significant(2.0 / 3, 10), "0.6666666667");
  EXPECT_EQ(significant(std::numeric_limits<double>::infinity()), "inf");
}

TEST(NumberText, FixedHasAllItsDecimals) {
  EXPECT_EQ(fixed(12.3, 2), "12.30");
  EXPECT_EQ(fixed(-3, 0), "-3");
  EXPECT_EQ(fixed(40.646, 2), "40.65");
  EXPECT_EQ(fixed(0.125, 2), "0.12");  // as printf: ties to even
  EXPECT_EQ(fixed(std::numeric_limits<double>::max(), 1).size(), 311U);
}

TEST(NumberText, ShortestReadsBackAsTheSameNumber) {
  EXPECT_EQ(shortest(0.1f), "0.1");
  EXPECT_EQ(shortest(-2.5), "-2.5");
  EXPECT_EQ(std::stof(shortest(1.0f / 3)), 1.0f / 3);
}

TEST(NumberText, MegabytesHaveADecimalBelowAHundred) {
  EXPECT_EQ(megabytes(0), "0.0 MB");
  EXPECT_EQ(megabytes(12'340'000), "12.3 MB");
  EXPECT_EQ(megabytes(100'400'000), "100 MB");
  EXPECT_EQ(megabytes(1'234'500'000), "1234 MB");
}

}  // namespace
}  // namespace heed
