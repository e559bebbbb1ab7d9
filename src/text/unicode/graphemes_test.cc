#include "text/unicode/graphemes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heed {
namespace {

std::vector<std::string> clusters(std::string_view text) {
  std::vector<std::string> all;
  for (size_t at = 0; at < text.size(); at += all.back().size()) {
    all.emplace_back(text.substr(at, grapheme_bytes(text, at)));
  }
  return all;
}

using Texts = std::vector<std::string>;

TEST(Graphemes, FollowAnnex29) {
  EXPECT_EQ(clusters("ab"), (Texts{"a", "b"}));
  EXPECT_EQ(clusters("e\u0301x"), (Texts{"e\u0301", "x"}));
  EXPECT_EQ(clusters("\r\n\n\r"), (Texts{"\r\n", "\n", "\r"}));
  EXPECT_EQ(clusters("\n\u0301"), (Texts{"\n", "\u0301"}));
  EXPECT_EQ(clusters("👨‍👩‍👧x"), (Texts{"👨‍👩‍👧", "x"}));
  EXPECT_EQ(clusters("👍🏽‍👍"), (Texts{"👍🏽‍👍"}));
  EXPECT_EQ(clusters("a‍👍"), (Texts{"a‍", "👍"}));
  EXPECT_EQ(clusters("🇩🇪🇫🇷🇮"), (Texts{"🇩🇪", "🇫🇷", "🇮"}));
  EXPECT_EQ(clusters("\u1100\u1161\u11A8\u1100"), (Texts{"\u1100\u1161\u11A8", "\u1100"}));
  EXPECT_EQ(clusters("각ᆨ가각"), (Texts{"각ᆨ", "가", "각"}));
  EXPECT_EQ(clusters("\u0600"
                     "1"),
            (Texts{"\u0600"
                   "1"}));
}

}  // namespace
}  // namespace heed
