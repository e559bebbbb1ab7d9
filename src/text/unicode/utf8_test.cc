#include "text/unicode/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heed {
namespace {

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> all;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    all.push_back(c.value);
    at += c.bytes;
  }
  return all;
}

TEST(Utf8, ReadsAndWritesEveryCodePoint) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    const std::string text = to_utf8(c);
    const CodePoint read = decode_utf8(text, 0);
    ASSERT_EQ(read.value, c);
    ASSERT_EQ(read.bytes, text.size());
    ASSERT_TRUE(is_utf8(text));
    const CodePoint before = decode_utf8_before("x" + text, text.size() + 1);
    ASSERT_EQ(before.value, c);
    ASSERT_EQ(before.bytes, text.size());
  }
}

TEST(Utf8, KeepsStrayBytes) {
  const std::string text = "a\xFF\xC3\xA9\xC3 \xED\xA0\x80\xF4\x90\x80\x80\xE2\x82";
  std::string again;
  for (const char32_t c : code_points(text)) append_utf8(again, c);
  EXPECT_EQ(again, text);
  EXPECT_EQ(code_points("\xC3\xA9\xC3"), (std::vector<char32_t>{0xE9, 0xDCC3}));
  EXPECT_EQ(decode_utf8_before("\xA9\xA9\xA9\xA9\xA9", 5).value, char32_t{0xDCA9});
  EXPECT_EQ(decode_utf8_before("\xC3\xA9", 1).value, char32_t{0xDCC3});
}

TEST(Utf8, RejectsOverlongAndSurrogates) {
  EXPECT_FALSE(is_utf8("\xC0\x80"));
  EXPECT_FALSE(is_utf8("\xE0\x80\x80"));
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));
  EXPECT_FALSE(is_utf8("\xF5"));
  EXPECT_EQ(well_formed_prefix("twelve bytes\xE2\x82"), 12U);
}

// The examples of Unicode 15, section 3.9, table 3-8 … 3-11.
TEST(Utf8, PutsOneReplacementForAMaximalSubpart) {
  const std::string r = to_utf8(kReplacementCharacter);
  EXPECT_EQ(repair_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(repair_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(repair_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
  EXPECT_EQ(repair_utf8("fine"), "fine");
}

TEST(Utf8, Counts) { EXPECT_EQ(count_code_points("h\xC3\xA9llo\xFF"), 6U); }

}  // namespace
}  // namespace heed
