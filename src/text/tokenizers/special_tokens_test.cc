#include "text/tokenizers/special_tokens.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

std::string shown(const SpecialTokens& tokens, std::string_view text) {
  std::string result;
  for (const auto& part : tokens.split(text)) {
    result += '[';
    if (part.id >= 0) result += std::to_string(part.id) + ':';
    result += text.substr(part.begin, part.end - part.begin);
    result += ']';
  }
  return result;
}

TEST(SpecialTokens, SplitTheText) {
  const SpecialTokens tokens({{"<a>", 1}, {"<b>", 2}});
  EXPECT_EQ(shown(tokens, ""), "");
  EXPECT_EQ(shown(tokens, "plain < a>"), "[plain < a>]");
  EXPECT_EQ(shown(tokens, "x <a> y<b><b>"), "[x ][1:<a>][ y][2:<b>][2:<b>]");
  EXPECT_TRUE(tokens.has(2));
  EXPECT_FALSE(tokens.has(3));
}

TEST(SpecialTokens, TheLongestWins) {
  const SpecialTokens tokens({{"<id_1", 1}, {"<id_12>", 12}, {"<id_1>", 11}});
  EXPECT_EQ(shown(tokens, "<id_12><id_1><id_1"), "[12:<id_12>][11:<id_1>][1:<id_1]");
}

TEST(SpecialTokens, StripWhiteSpace) {
  const SpecialTokens tokens({{"<l>", 1, true, false}, {"<r>", 2, false, true}});
  EXPECT_EQ(shown(tokens, "a \t<l> b"), "[a][1:<l>][ b]");
  EXPECT_EQ(shown(tokens, "a <r>\u3000\n b"), "[a ][2:<r>][b]");
  EXPECT_EQ(shown(tokens, "é\u3000<l>"), "[é][1:<l>]");
  EXPECT_EQ(shown(tokens, "  <l>  <l>"), "[1:<l>][1:<l>]");
  // Invalid bytes are not white space.
  EXPECT_EQ(shown(tokens, "\x80<l>"), "[\x80][1:<l>]");
}

}  // namespace
}  // namespace heed
