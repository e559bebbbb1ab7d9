#include "infer/cache/prefix_index.h"

#include <gtest/gtest.h>

#include <array>

namespace heed {
namespace {

using Tokens = std::array<int32_t, 2>;

TEST(PrefixIndex, ATextIsFoundByItsWholeBeginning) {
  PrefixIndex index(8, 2, 1);
  const auto a = index.add(PrefixIndex::kRoot, Tokens{1, 2});
  const auto b = index.add(a, Tokens{3, 4});
  EXPECT_EQ(index.find(PrefixIndex::kRoot, Tokens{1, 2}), a);
  EXPECT_EQ(index.find(a, Tokens{3, 4}), b);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, Tokens{3, 4}), std::nullopt);  // not at the beginning
  EXPECT_EQ(index.find(b, Tokens{3, 4}), std::nullopt);
  EXPECT_EQ(index.find(a, Tokens{4, 3}), std::nullopt);
}

// One bucket for everything: equal hashes must not make equal texts.
TEST(PrefixIndex, ACollisionIsNotAMatch) {
  PrefixIndex index(1, 2, 1);
  const auto a = index.add(PrefixIndex::kRoot, Tokens{1, 2});
  const auto b = index.add(PrefixIndex::kRoot, Tokens{5, 6});
  const auto c = index.add(PrefixIndex::kRoot, Tokens{7, 8});
  EXPECT_EQ(index.find(PrefixIndex::kRoot, Tokens{1, 2}), a);
  index.remove(b);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, Tokens{5, 6}), std::nullopt);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, Tokens{1, 2}), a);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, Tokens{7, 8}), c);
}

// The index of a removed node is used again; its children must not become the newcomer's.
TEST(PrefixIndex, ChildrenOfARemovedNodeStayLost) {
  PrefixIndex index(8, 2, 1);
  const auto a = index.add(PrefixIndex::kRoot, Tokens{1, 2});
  index.add(a, Tokens{3, 4});
  index.remove(a);
  const auto other = index.add(PrefixIndex::kRoot, Tokens{9, 9});
  ASSERT_EQ(other, a);
  EXPECT_EQ(index.find(other, Tokens{3, 4}), std::nullopt);
}

TEST(PrefixIndex, TheLeastRecentlyUsedWithAnIdleBlockGoesFirst) {
  PrefixIndex index(8, 2, 2);
  const auto a = index.add(PrefixIndex::kRoot, Tokens{1, 2});
  const auto b = index.add(PrefixIndex::kRoot, Tokens{3, 4});
  const auto c = index.add(PrefixIndex::kRoot, Tokens{5, 6});
  index.hold(a, 0, 3), index.hold(b, 1, 4), index.hold(c, 0, 5);
  EXPECT_EQ(index.holder(4), b);
  EXPECT_EQ(index.holder(7), PrefixIndex::kRoot);
  EXPECT_EQ(index.blocks(b)[0], PrefixIndex::kNoBlock);
  index.set_idle(4, true), index.set_idle(5, true);
  EXPECT_EQ(index.idle(), 2);
  EXPECT_EQ(index.oldest_idle(), b);  // a is older, but in use
  index.touch(b);
  EXPECT_EQ(index.oldest_idle(), c);
  index.set_idle(5, false);
  EXPECT_EQ(index.oldest_idle(), b);
  index.set_idle(4, false);
  index.let_go(b, 1);
  index.remove(b);
  EXPECT_EQ(index.holder(4), PrefixIndex::kRoot);
  EXPECT_EQ(index.idle(), 0);
}

}  // namespace
}  // namespace heed
