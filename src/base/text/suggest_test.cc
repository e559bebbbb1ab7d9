#include "base/text/suggest.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(EditDistance, CountsEachKindOfEdit) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("bench", "bench"), 0);
  EXPECT_EQ(edit_distance("bench", "benh"), 1);
  EXPECT_EQ(edit_distance("bench", "bencch"), 1);
  EXPECT_EQ(edit_distance("bench", "bunch"), 1);
  EXPECT_EQ(edit_distance("bench", "bnech"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Nearest, FindsTheNameBehindATypo) {
  const std::vector<std::string> verbs = {"train", "translate", "bench"};
  EXPECT_EQ(nearest("bnech", verbs), "bench");
  EXPECT_EQ(nearest("tranlsate", verbs), "translate");
  EXPECT_EQ(nearest("trian", verbs), "train");
}

TEST(Nearest, TakesAnAbbreviationOrALongerWord) {
  EXPECT_EQ(nearest("benchmark", {"train", "bench"}), "bench");
  EXPECT_EQ(nearest("--sec", {"--seconds", "--seed"}), "--seconds");
}

TEST(Nearest, ComparesFlagsWithoutTheirDashes) {
  EXPECT_EQ(nearest("-json", {"--threads", "--json"}), "--json");
  EXPECT_EQ(nearest("--thread", {"--threads", "--json"}), "--threads");
  EXPECT_EQ(nearest("--x", {"--threads", "--json"}), std::nullopt);
}

TEST(Nearest, FindsNothingWhenNoNameIsNear) {
  EXPECT_EQ(nearest("cook", {"train", "bench"}), std::nullopt);
  EXPECT_EQ(nearest("--verbose", {"--version", "--help"}), std::nullopt);
  EXPECT_EQ(nearest("bench", {}), std::nullopt);
  EXPECT_EQ(nearest("", {"train"}), std::nullopt);
}

}  // namespace
}  // namespace heed
