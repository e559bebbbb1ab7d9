#include "text/containers/string_map.h"

#include <gtest/gtest.h>

#include <string>

namespace heed {
namespace {

TEST(StringMap, FindsWhatWasInserted) {
  std::vector<std::string> texts;
  for (int i = 0; i < 20000; ++i) texts.push_back(std::string(i % 40, 'x') + std::to_string(i));
  StringMap map;
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(map.insert(texts[i], int32_t(i)), -1);
  EXPECT_EQ(map.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(map.find(texts[i]), int32_t(i));
  EXPECT_EQ(map.find("never"), -1);
  EXPECT_EQ(map.find(""), -1);
}

TEST(StringMap, KeepsTheFirstId) {
  StringMap map;
  EXPECT_EQ(map.insert("a", 1), -1);
  EXPECT_EQ(map.insert("a", 2), 1);
  EXPECT_EQ(map.find("a"), 1);
  EXPECT_EQ(map.insert({}, 3), -1);
  EXPECT_EQ(map.find(""), 3);
}

}  // namespace
}  // namespace heed
