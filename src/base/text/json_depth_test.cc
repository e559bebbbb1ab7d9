#include "base/text/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace heed {
namespace {

std::string nested(int levels) {
  return std::string(static_cast<size_t>(levels), '[') +
         std::string(static_cast<size_t>(levels), ']');
}

TEST(JsonDepth, CountsListsAndObjects) {
  EXPECT_FALSE(is_too_deep_json(""));
  EXPECT_FALSE(is_too_deep_json(nested(kDeepestJson)));
  EXPECT_TRUE(is_too_deep_json(nested(kDeepestJson + 1)));
  EXPECT_TRUE(is_too_deep_json(std::string(1'000'000, '{')));
}

TEST(JsonDepth, CountsOnlyOpenBrackets) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += nested(3);
  EXPECT_FALSE(is_too_deep_json(many));
}

TEST(JsonDepth, IgnoresBracketsInStrings) {
  const std::string open(1000, '[');
  EXPECT_FALSE(is_too_deep_json("\"" + open + "\""));
  EXPECT_FALSE(is_too_deep_json(R"(["a\")" + open + "\"]"));
  EXPECT_TRUE(is_too_deep_json(R"(["a\\")" + open));
}

}  // namespace
}  // namespace heed
