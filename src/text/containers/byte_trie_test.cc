#include "text/containers/byte_trie.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace heed {
namespace {

TEST(ByteTrie, FindsAllPrefixes) {
  ByteTrie trie;
  EXPECT_TRUE(trie.empty());
  trie.insert("", 9);
  trie.insert("a", 1);
  trie.insert("abc", 3);
  trie.insert("abcd\xFF", 5);
  std::vector<std::pair<size_t, int32_t>> found;
  trie.prefixes("abcde", [&](size_t bytes, int32_t value) { found.emplace_back(bytes, value); });
  EXPECT_EQ(found, (std::vector<std::pair<size_t, int32_t>>{{1, 1}, {3, 3}}));
  EXPECT_EQ(trie.longest_prefix("abcd\xFF!").value, 5);
  EXPECT_EQ(trie.longest_prefix("ab").bytes, 1U);
  EXPECT_EQ(trie.longest_prefix("xa").value, -1);
  EXPECT_EQ(trie.longest_prefix("").value, -1);
  EXPECT_TRUE(trie.begins('a'));
  EXPECT_FALSE(trie.begins('b'));
}

TEST(ByteTrie, HoldsManyTexts) {
  ByteTrie trie;
  for (int i = 0; i < 30000; ++i) trie.insert(std::to_string(i * 7919), i);
  for (int i = 0; i < 30000; ++i) {
    const std::string text = std::to_string(i * 7919);
    const ByteTrie::Match match = trie.longest_prefix(text);
    ASSERT_EQ(match.value, i);
    ASSERT_EQ(match.bytes, text.size());
  }
}

}  // namespace
}  // namespace heed
