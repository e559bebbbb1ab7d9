#include "infer/search/terms.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(Terms, AreWholeWords) {
  EXPECT_TRUE(contains_words("The car is red.", "car"));
  EXPECT_TRUE(contains_words("car", "car"));
  EXPECT_FALSE(contains_words("The carpet is red.", "car"));
  EXPECT_FALSE(contains_words("A scar.", "car"));
  EXPECT_TRUE(contains_words("A scar on the car.", "car"));
}

TEST(Terms, AreFoundInAnyCase) {
  EXPECT_TRUE(contains_words("The Machine Learning course", "machine learning"));
  EXPECT_TRUE(contains_words("über ÄPFEL", "Äpfel"));
}

TEST(Terms, MayTouchWhereWordsHaveNoSpaces) {
  EXPECT_TRUE(contains_words("私は猫が好きです", "猫"));
}

TEST(Terms, OfNothingAreNowhere) {
  EXPECT_FALSE(contains_words("The car", ""));
  EXPECT_FALSE(contains_words("", "car"));
}

}  // namespace
}  // namespace heed
