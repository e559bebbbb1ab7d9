// Decodes UTF-8 one code point at a time; the text may contain invalid bytes.
//
// A byte that is part of no well-formed sequence decodes to the code point kStrayByte + byte: a lone
// surrogate (U+DC80 … U+DCFF), which no well-formed text contains (Python's surrogateescape). It
// encodes to that byte again, so no byte is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

inline constexpr char32_t kStrayByte = 0xDC00;
inline constexpr char32_t kReplacementCharacter = 0xFFFD;

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  // its size in the text
};

constexpr bool is_stray_byte(char32_t c) { return c >= 0xDC80 && c <= 0xDCFF; }
constexpr bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

namespace utf8_detail {
CodePoint decode_beyond_ascii(std::string_view text, size_t at);
void append_beyond_ascii(std::string& out, char32_t c);
}  // namespace utf8_detail

// The code point at byte `at`, which must be less than text.size().
inline CodePoint decode_utf8(std::string_view text, size_t at) {
  if (is_ascii(text[at])) return {static_cast<unsigned char>(text[at]), 1};
  return utf8_detail::decode_beyond_ascii(text, at);
}

inline void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else {
    utf8_detail::append_beyond_ascii(out, c);
  }
}

inline std::string to_utf8(char32_t c) {
  std::string text;
  append_utf8(text, c);
  return text;
}

// The code point that ends before byte `end`, which must be greater than 0.
CodePoint decode_utf8_before(std::string_view text, size_t end);

// The first byte that is not well-formed, or text.size().
size_t well_formed_prefix(std::string_view text);
inline bool is_utf8(std::string_view text) { return well_formed_prefix(text) == text.size(); }

// How many bytes from `at` one U+FFFD replaces: the longest truncated prefix of a sequence (Unicode's
// "maximal subpart"), as in most decoders.
size_t broken_bytes(std::string_view text, size_t at);
// The text with U+FFFD in place of invalid bytes.
std::string repair_utf8(std::string_view text);

size_t count_code_points(std::string_view text);

}  // namespace heed
