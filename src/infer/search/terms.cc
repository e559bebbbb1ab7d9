#include "infer/search/terms.h"

#include <string>

#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

std::u32string lower(std::string_view text) {
  std::string lowered;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    append_lower(lowered, c.value);
    at += c.bytes;
  }
  std::u32string points;
  for (size_t at = 0; at < lowered.size();) {
    const CodePoint c = decode_utf8(lowered, at);
    points += c.value;
    at += c.bytes;
  }
  return points;
}

// Whether two adjacent characters are of one word. From U+2E80 on are the scripts of Chinese and
// Japanese, which have no spaces between words.
bool are_joined(char32_t a, char32_t b) {
  constexpr char32_t kWithoutSpaces = 0x2E80;
  return a < kWithoutSpaces && b < kWithoutSpaces && is_word_character(a) && is_word_character(b);
}

}  // namespace

bool contains_words(std::string_view text, std::string_view words) {
  const std::u32string whole = lower(text), part = lower(words);
  if (part.empty()) return false;
  for (size_t at = whole.find(part); at != std::u32string::npos; at = whole.find(part, at + 1)) {
    const size_t end = at + part.size();
    const bool begins_word = at == 0 || !are_joined(whole[at - 1], whole[at]);
    const bool ends_word = end == whole.size() || !are_joined(whole[end - 1], whole[end]);
    if (begins_word && ends_word) return true;
  }
  return false;
}

}  // namespace heed
