#include "text/metrics/metric_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heed {
namespace {

using testing::ElementsAre;

TEST(MetricText, DecodesAndEncodesUtf8) {
  EXPECT_EQ(code_points("aé我😀"), U"aé我😀");
  EXPECT_EQ(to_utf8(U"aé我😀"), "aé我😀");
  EXPECT_EQ(to_utf8(code_points("a\xff\xc3")), "a\xff\xc3");
}

TEST(MetricText, SplitsAtUnicodeSpaces) {
  EXPECT_THAT(split_words("  a b\tc\u00a0d\u3000e\u2028"), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(split_words("a\u200bb"),
              ElementsAre("a\u200bb"));  // zero width space is not white space
  EXPECT_THAT(split_words(" \n"), ElementsAre());
}

TEST(MetricText, Strips) {
  EXPECT_EQ(strip_end(" a b \u00a0\r\n"), " a b");
  EXPECT_EQ(strip_end("é"), "é");
  EXPECT_EQ(strip("\u3000 a b "), "a b");
  EXPECT_EQ(strip(" \t"), "");
}

TEST(MetricText, LowercasesByUnicode) {
  EXPECT_EQ(lower("ABC xyz 12"), "abc xyz 12");
  EXPECT_EQ(lower("ÄÖÉẞ"), "äöéß");
  EXPECT_EQ(lower("ΣΑΣ"), "σας");    // the last sigma of a word
  EXPECT_EQ(lower("İ"), "i\u0307");  // longer than before
  EXPECT_EQ(lower("İİİİİİİİ").size(), 8u * 3);
}

TEST(MetricText, ReplacesLeftToRight) {
  std::string text = "aaa&amp;lt;";
  replace_all(text, "aa", "b");
  EXPECT_EQ(text, "ba&amp;lt;");
  replace_all(text, "&amp;", "&");
  EXPECT_EQ(text, "ba&lt;");
}

}  // namespace
}  // namespace heed
