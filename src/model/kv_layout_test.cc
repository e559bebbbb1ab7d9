#include "model/kv_layout.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

ModelConfig decoder(int layers, std::vector<int64_t> windows) {
  ModelConfig c;
  c.family = Family::decoder_only;
  c.width = 64, c.heads = 8, c.kv_heads = 2, c.decoder_layers = layers;
  if (!windows.empty()) c.attention = AttentionSpan::sliding_window;
  c.windows = std::move(windows);
  return c;
}

std::vector<int64_t> windows(const KvLayout& layout) {
  std::vector<int64_t> all;
  for (const KvLayout::Group& group : layout.groups) all.push_back(group.window);
  return all;
}

TEST(KvLayout, LayersThatSeeEverythingAreOneGroup) {
  const KvLayout layout = kv_layout(decoder(6, {}));
  EXPECT_EQ(windows(layout), (std::vector<int64_t>{0}));
  EXPECT_EQ(layout.layers_per_block, 6);
  EXPECT_EQ(layout.kv_heads, 2);
  EXPECT_EQ(layout.head_dim, 8);
  EXPECT_EQ(layout.self[4].layer, 4);
  EXPECT_TRUE(layout.cross.empty());
  // 2 kv heads, not 8, of keys and values.
  EXPECT_EQ(layout.block_floats(), 6 * 2 * 2 * 8 * kernels::kKvBlock);
}

TEST(KvLayout, LocalAndGlobalLayersHaveTablesOfTheirOwn) {
  const KvLayout layout = kv_layout(decoder(6, {32, 0}));
  EXPECT_EQ(windows(layout), (std::vector<int64_t>{32, 0}));
  EXPECT_EQ(layout.layers_per_block, 3);
  EXPECT_EQ(layout.self[3].group, 1);
  EXPECT_EQ(layout.self[3].layer, 1);
}

TEST(KvLayout, BlocksOfOneSizeServeKindsOfDifferentNumber) {
  const KvLayout layout = kv_layout(decoder(9, {32, 32, 0}));  // 6 local layers, 3 global ones
  EXPECT_EQ(layout.layers_per_block, 3);
  EXPECT_EQ(windows(layout), (std::vector<int64_t>{32, 32, 0}));
  std::vector<std::pair<int, int>> places;
  for (const auto& [group, layer] : layout.self) places.emplace_back(group, layer);
  const std::vector<std::pair<int, int>> expected{{0, 0}, {0, 1}, {2, 0}, {0, 2}, {1, 0},
                                                  {2, 1}, {1, 1}, {1, 2}, {2, 2}};
  EXPECT_EQ(places, expected);
}

TEST(KvLayout, TheSourceIsAGroupToo) {
  ModelConfig c = decoder(4, {});
  c.family = Family::encoder_decoder;
  c.decoder_heads = 4, c.kv_heads = 0;
  const KvLayout layout = kv_layout(c);
  ASSERT_EQ(layout.groups.size(), 2u);
  EXPECT_FALSE(layout.groups[0].cross);
  EXPECT_TRUE(layout.groups[1].cross);
  EXPECT_EQ(layout.cross[3].group, 1);
  EXPECT_EQ(layout.cross[3].layer, 3);
  EXPECT_EQ(layout.kv_heads, 4);
  EXPECT_EQ(layout.head_dim, 16);
}

}  // namespace
}  // namespace heed
