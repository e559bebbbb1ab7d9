#include "infer/search/phrases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heed {
namespace {

using testing::ElementsAre;
using Ids = std::vector<int32_t>;

TEST(Completions, AreTheLastIdsOfPhrasesThatTheTextEndsWith) {
  const Phrases phrases{{5, 6, 7}, {6, 8}, {9}, {1, 6, 2}};
  Ids ids;
  completions(phrases, Ids{4, 5, 6}, ids);
  EXPECT_THAT(ids, ElementsAre(7, 8, 9));
}

TEST(Progress, OfNothingYet) {
  const PhraseProgress p = progress({{5, 6}, {7}}, Ids{1, 2});
  EXPECT_EQ(p.met, 0);
  EXPECT_EQ(p.left, 3);
  EXPECT_THAT(p.next, ElementsAre(5, 7));
}

TEST(Progress, APhraseThatIsUnderWayGoesOn) {
  const PhraseProgress p = progress({{5, 6}, {7}}, Ids{1, 5});
  EXPECT_EQ(p.met, 1);
  EXPECT_EQ(p.begun, 1);
  EXPECT_EQ(p.left, 2);
  EXPECT_THAT(p.next, ElementsAre(6));
}

TEST(Progress, APhraseThatWasBrokenOffStartsAnew) {
  EXPECT_EQ(progress({{5, 6}}, Ids{5, 1}).met, 0);
  EXPECT_THAT(progress({{5, 5, 6}}, Ids{5, 5, 5}).next, ElementsAre(6));
}

TEST(Progress, AllMet) {
  const PhraseProgress p = progress({{5, 6}, {7}}, Ids{7, 5, 6, 1});
  EXPECT_EQ(p.met, 3);
  EXPECT_EQ(p.left, 0);
  EXPECT_THAT(p.next, ElementsAre());
}

}  // namespace
}  // namespace heed
