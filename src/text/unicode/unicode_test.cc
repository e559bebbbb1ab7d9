#include "text/unicode/unicode.h"

#include <gtest/gtest.h>

#include "text/unicode/utf8.h"

namespace heed {
namespace {

TEST(Unicode, TablesOfAsciiAgreeWithIcu) {
  for (char32_t c = 0; c < 128; ++c) {
    EXPECT_EQ(is_letter(c), unicode_detail::is_letter(c)) << int(c);
    EXPECT_EQ(is_number(c), unicode_detail::is_number(c)) << int(c);
    EXPECT_EQ(is_space(c), unicode_detail::is_space(c)) << int(c);
    EXPECT_EQ(is_punctuation(c), unicode_detail::is_punctuation(c)) << int(c);
    EXPECT_EQ(is_split_punctuation(c), c > ' ' && c < 127 && !is_letter(c) && !is_number(c));
  }
}

TEST(Unicode, ClassifiesCodePoints) {
  EXPECT_TRUE(is_letter(U'é') && is_letter(U'東') && is_letter(U'ª'));
  EXPECT_TRUE(is_number(U'½') && is_number(U'Ⅷ') && is_number(U'٣'));
  EXPECT_TRUE(is_space(0xA0) && is_space(0x85) && is_space(0x3000) && !is_space(0x200B));
  EXPECT_TRUE(is_punctuation(U'«') && !is_punctuation(U'€') && !is_punctuation(U'$'));
  EXPECT_TRUE(is_mark(0x0903) && !is_nonspacing_mark(0x0903) && is_nonspacing_mark(0x300));
  EXPECT_TRUE(is_word_character(U'_') && is_word_character(0x300) && is_word_character(U'é'));
  EXPECT_TRUE(!is_word_character(U'-') && !is_word_character(U'½') && !is_word_character(U'€'));
  for (char32_t c = 0xDC80; c <= 0xDCFF; ++c) {
    EXPECT_FALSE(is_letter(c) || is_number(c) || is_space(c) || is_punctuation(c) || is_mark(c));
  }
}

TEST(Unicode, Lowers) {
  const auto lower = [](char32_t c) {
    std::string text;
    append_lower(text, c);
    return text;
  };
  EXPECT_EQ(lower(U'A'), "a");
  EXPECT_EQ(lower(U'É'), "é");
  EXPECT_EQ(lower(U'İ'), "i\u0307");
  EXPECT_EQ(lower(U'Σ'), "σ");
  EXPECT_EQ(lower(U'ẞ'), "ß");
  EXPECT_EQ(lower(0xDCFF), "\xFF");
}

}  // namespace
}  // namespace heed
