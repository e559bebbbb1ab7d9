#include "infer/engine/decode_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heed {
namespace {

using testing::ElementsAre;

KvLayout one_group() {
  return {.kv_heads = 1,
          .head_dim = 2,
          .layers_per_block = 1,
          .groups = {{}},
          .self = {{}},
          .cross = {}};
}

TEST(DecodeBatch, RowsGoOnFromWhatIsCached) {
  const KvLayout layout = one_group();
  KvCache cache(layout, {.memory_bytes = 1 << 16});
  const auto a = cache.open(), b = cache.open();
  ASSERT_TRUE(cache.extend(a, 18));
  DecodeBatch step(cache);
  ASSERT_TRUE(step.add(a, std::vector<int32_t>{7}));
  ASSERT_TRUE(step.add(b, std::vector<int32_t>{4, 5, 6}));
  const Batch batch = step.batch();
  EXPECT_THAT(batch.tokens, ElementsAre(7, 4, 5, 6));
  EXPECT_THAT(batch.positions, ElementsAre(18, 0, 1, 2));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 1, 4));
  EXPECT_THAT(batch.token_types, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(step.last_rows(), ElementsAre(0, 3));
  const KvView view = step.view();
  ASSERT_EQ(view.sequences(), 2);
  EXPECT_EQ(view.tables[0].keys, 19);
  EXPECT_EQ(view.tables[1].keys, 3);

  step.clear();
  EXPECT_TRUE(step.empty());
  ASSERT_TRUE(step.add(b, std::vector<int32_t>{8}));
  EXPECT_THAT(step.batch().positions, ElementsAre(3));
  EXPECT_THAT(step.batch().offsets, ElementsAre(0, 1));
}

TEST(DecodeBatch, WithoutRoomNothingChanges) {
  const KvLayout layout = one_group();
  KvCache cache(layout, {.memory_bytes = 2 * sizeof(float) * 64});
  ASSERT_EQ(cache.blocks(), 2);
  const auto a = cache.open(), b = cache.open();
  DecodeBatch step(cache);
  ASSERT_TRUE(step.add(a, std::vector<int32_t>(20)));
  EXPECT_FALSE(step.add(b, std::vector<int32_t>{1}));
  EXPECT_EQ(step.rows(), 20);
  EXPECT_EQ(step.sequences().size(), 1u);
  EXPECT_EQ(cache.length(b), 0);
}

}  // namespace
}  // namespace heed
