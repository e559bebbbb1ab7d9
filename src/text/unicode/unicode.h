// Character classes and lower case of code points, from ICU; ASCII from tables.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace heed {

namespace unicode_detail {

enum : uint8_t { kLetter = 1, kNumber = 2, kSpace = 4, kPunctuation = 8, kSymbol = 16 };

constexpr std::array<uint8_t, 128> ascii_classes() {
  std::array<uint8_t, 128> classes{};
  for (unsigned c = 0; c < 128; ++c) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) classes[c] = kLetter;
    if (c >= '0' && c <= '9') classes[c] = kNumber;
    if (c == ' ' || (c >= '\t' && c <= '\r')) classes[c] = kSpace;
    if (c > ' ' && c < 0x7F && classes[c] == 0) {
      const bool symbol = c == '$' || c == '+' || c == '<' || c == '=' || c == '>' || c == '^' ||
                          c == '`' || c == '|' || c == '~';
      classes[c] = symbol ? kSymbol : kPunctuation;
    }
  }
  return classes;
}
inline constexpr std::array<uint8_t, 128> kAscii = ascii_classes();

bool is_letter(char32_t c);
bool is_number(char32_t c);
bool is_space(char32_t c);
bool is_punctuation(char32_t c);

}  // namespace unicode_detail

// \p{L}, \p{N}, White_Space, \p{P}
inline bool is_letter(char32_t c) {
  return c < 128 ? unicode_detail::kAscii[c] == unicode_detail::kLetter
                 : unicode_detail::is_letter(c);
}
inline bool is_number(char32_t c) {
  return c < 128 ? unicode_detail::kAscii[c] == unicode_detail::kNumber
                 : unicode_detail::is_number(c);
}
inline bool is_space(char32_t c) {
  return c < 128 ? unicode_detail::kAscii[c] == unicode_detail::kSpace
                 : unicode_detail::is_space(c);
}
inline bool is_punctuation(char32_t c) {
  return c < 128 ? unicode_detail::kAscii[c] == unicode_detail::kPunctuation
                 : unicode_detail::is_punctuation(c);
}
// Punctuation, and ASCII's symbols ($ + < = > ^ ` | ~): what BERT splits at.
inline bool is_split_punctuation(char32_t c) {
  return c < 128 ? unicode_detail::kAscii[c] >= unicode_detail::kPunctuation
                 : unicode_detail::is_punctuation(c);
}

bool is_mark(char32_t c);             // \p{M}
bool is_nonspacing_mark(char32_t c);  // \p{Mn}
// \w of regular expressions: alphabetic, marks, decimal digits, connectors, joiners.
bool is_word_character(char32_t c);

// The lower case of one character without context; that of İ is two characters.
void append_lower(std::string& out, char32_t c);

}  // namespace heed
