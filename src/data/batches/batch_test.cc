#include "data/batches/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heed {
namespace {

using testing::ElementsAre;

TEST(Rows, EndSequenceNumbersPositionsFromZero) {
  Rows rows;
  rows.tokens = {5, 6, 7};
  rows.end_sequence();
  rows.tokens.push_back(8);
  rows.token_types.push_back(1);
  rows.end_sequence();
  EXPECT_THAT(rows.positions, ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(rows.token_types, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 3, 4));
  EXPECT_EQ(rows.sequences(), 2);
}

}  // namespace
}  // namespace heed
