#include "text/metrics/metric_text.h"

#include <unicode/ucasemap.h>

#include "base/check.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// The code point that starts at `position`, which moves past it.
char32_t next_code_point(std::string_view text, size_t& position) {
  const CodePoint c = decode_utf8(text, position);
  position += c.bytes;
  return c.value;
}

}  // namespace

std::u32string code_points(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  for (size_t i = 0; i < text.size();) characters.push_back(next_code_point(text, i));
  return characters;
}

std::string to_utf8(std::u32string_view characters) {
  std::string text;
  text.reserve(characters.size());
  for (const char32_t c : characters) append_utf8(text, c);
  return text;
}

bool is_python_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

std::string_view strip_end(std::string_view text) {
  size_t end = 0;  // after the last character that is not a space
  // Fast path: most lines end in an ASCII character that is not white space.
  if (!text.empty() && text.back() > ' ') return text;
  for (size_t i = 0; i < text.size();) {
    if (!is_python_space(next_code_point(text, i))) end = i;
  }
  return text.substr(0, end);
}

std::string_view strip(std::string_view text) {
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    if (!is_python_space(next_code_point(text, i))) break;
    begin = i;
  }
  return strip_end(text.substr(begin));
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;  // of the word being read
  for (size_t i = 0; i < text.size();) {
    const size_t here = i;
    if (!is_python_space(next_code_point(text, i))) continue;
    if (here > begin) words.push_back(text.substr(begin, here - begin));
    begin = i;
  }
  if (text.size() > begin) words.push_back(text.substr(begin));
  return words;
}

std::string lower(std::string_view text) {
  std::string result(text);
  bool ascii = true;
  for (char& c : result) {
    ascii = ascii && is_ascii(c);
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (ascii) return result;

  UErrorCode status = U_ZERO_ERROR;
  UCaseMap* map = ucasemap_open("", 0, &status);  // the root locale
  HEED_CHECK(U_SUCCESS(status), "ICU must have a case map for the root locale");
  const auto bytes = static_cast<int32_t>(text.size());
  int32_t length = ucasemap_utf8ToLower(map, result.data(), bytes, text.data(), bytes, &status);
  if (status == U_BUFFER_OVERFLOW_ERROR) {
    status = U_ZERO_ERROR;
    result.resize(static_cast<size_t>(length));
    length = ucasemap_utf8ToLower(map, result.data(), length, text.data(), bytes, &status);
  }
  ucasemap_close(map);
  HEED_CHECK(U_SUCCESS(status), u_errorName(status));
  result.resize(static_cast<size_t>(length));
  return result;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string result;
  size_t copied = 0;
  for (; at != std::string::npos; at = text.find(from, copied)) {
    result.append(text, copied, at - copied).append(to);
    copied = at + from.size();
  }
  text = result.append(text, copied);
}

}  // namespace heed
