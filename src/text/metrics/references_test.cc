#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/error.h"
#include "heed/metrics.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(References, CombinesFiles) {
  EXPECT_THAT(as_references({{"a", "b"}, {"c", ""}}),
              ElementsAre(ElementsAre("a", "c"), ElementsAre("b", "")));
  EXPECT_THAT(without_empty(as_references({{"a", "b"}, {"c", ""}})),
              ElementsAre(ElementsAre("a", "c"), ElementsAre("b")));
  EXPECT_THROW(as_references({{"a", "b"}, {"c"}}), Error);
}

TEST(References, TsvMayHaveAnyNumberOfColumns) {
  EXPECT_THAT(
      references_from_tsv({"src\tone", "src\tone\ttwo ", "src\t\ttwo", "src"}),
      ElementsAre(ElementsAre("one"), ElementsAre("one", "two"), ElementsAre("two"), IsEmpty()));
}

TEST(References, ReadsLines) {
  EXPECT_THAT(read_lines(HEED_TEST_DATA "/golden/bleu/tiny.ref1"),
              ElementsAre("The dog had bit the man.", "No one was surprised.",
                          "The man had bitten the dog.", "", "a"));
  EXPECT_THROW(read_lines("no/such/file"), Error);
  EXPECT_THROW(read_lines(HEED_TEST_DATA), Error);
}

}  // namespace
}  // namespace heed
