#include "text/metrics/bleu_tokenizers.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text/suggest.h"
#include "heed/error.h"
#include "text/metrics/metric_text.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// All rules below except intl's concern ASCII characters, so they work on bytes: bytes of a multi-byte
// character match none of them, and are "not a digit" as the character is.

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// [{-~[-` -&(-+:-@/]: the space and all ASCII punctuation except ' , - .
bool is_ascii_symbol(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// Rewrites each adjacent pair that `matches`, left to right, without overlaps. `write` appends the
// replacement.
template <class Matches, class Write>
std::string rewrite_pairs(std::string_view text, Matches matches, Write write) {
  std::string result;
  result.reserve(text.size() + text.size() / 4);
  for (size_t i = 0; i < text.size();) {
    if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
      write(result, text[i], text[i + 1]);
      i += 2;
    } else {
      result.push_back(text[i++]);
    }
  }
  return result;
}

bool is_symbol(char32_t c) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_S_MASK) != 0; }

std::u32string split_punctuation_after_non_numbers(std::u32string_view text) {
  std::u32string result;
  for (size_t i = 0; i < text.size();) {
    if (i + 1 < text.size() && !is_number(text[i]) && is_punctuation(text[i + 1])) {
      result.append({text[i], U' ', text[i + 1], U' '});
      i += 2;
    } else {
      result.push_back(text[i++]);
    }
  }
  return result;
}

std::u32string split_punctuation_before_non_numbers(std::u32string_view text) {
  std::u32string result;
  for (size_t i = 0; i < text.size();) {
    if (i + 1 < text.size() && is_punctuation(text[i]) && !is_number(text[i + 1])) {
      result.append({U' ', text[i], U' ', text[i + 1]});
      i += 2;
    } else {
      result.push_back(text[i++]);
    }
  }
  return result;
}

std::string tokenize_none(std::string_view text) { return std::string(text); }

std::string tokenize_13a(std::string_view text) {
  std::string line(text);
  replace_all(line, "<skipped>", "");
  replace_all(line, "-\n", "");
  replace_all(line, "\n", " ");
  undo_xml_escapes(line);
  return split_western_punctuation(" " + line + " ");
}

// mteval-v14's rules by Unicode categories.
std::string tokenize_intl(std::string_view text) {
  const std::u32string split =
      split_punctuation_before_non_numbers(split_punctuation_after_non_numbers(code_points(text)));
  std::string result;
  for (const char32_t c : split) {
    if (is_symbol(c)) {
      result.push_back(' ');
      append_utf8(result, c);
      result.push_back(' ');
    } else {
      append_utf8(result, c);
    }
  }
  return result;
}

std::string tokenize_char(std::string_view text) {
  std::string result;
  for (const char32_t c : code_points(text)) {
    append_utf8(result, c);
    result.push_back(' ');
  }
  return result;
}

// The ranges that sacreBLEU's zh tokenizer treats as Chinese. Two ranges of supplementary planes are
// written '\u20000'–'\u2a6d6' and '\u2f800'–'\u2fa1d': in Python each end is two characters, so
// they mean U+2001–U+2A6D and U+2F81–U+2FA1. Curly quotes and dashes are therefore split off, and
// rare ideographs are not. Published scores include that, so this table does too.
constexpr std::array<std::pair<char32_t, char32_t>, 22> kChineseRanges = {{
    {0x3400, 0x4db5}, {0x4e00, 0x9fa5}, {0x9fa6, 0x9fbb}, {0xf900, 0xfa2d}, {0xfa30, 0xfa6a},
    {0xfa70, 0xfad9}, {0x2001, 0x2a6d}, {0x2f81, 0x2fa1}, {0xff00, 0xffef}, {0x2e80, 0x2eff},
    {0x3000, 0x303f}, {0x31c0, 0x31ef}, {0x2f00, 0x2fdf}, {0x2ff0, 0x2fff}, {0x3100, 0x312f},
    {0x31a0, 0x31bf}, {0xfe10, 0xfe1f}, {0xfe30, 0xfe4f}, {0x2600, 0x26ff}, {0x2700, 0x27bf},
    {0x3200, 0x32ff}, {0x3300, 0x33ff},
}};

bool is_chinese(char32_t c) {
  return c >= 0x2001 && std::any_of(kChineseRanges.begin(), kChineseRanges.end(), [c](auto range) {
           return c >= range.first && c <= range.second;
         });
}

std::string tokenize_zh(std::string_view text) {
  std::string line;
  for (const char32_t c : code_points(strip(text))) {
    const bool apart = is_chinese(c);
    if (apart) line.push_back(' ');
    append_utf8(line, c);
    if (apart) line.push_back(' ');
  }
  return split_western_punctuation(line);
}

struct NamedTokenizer {
  const char* name;
  BleuTokenizer tokenizer;
};
constexpr std::array<NamedTokenizer, 5> kTokenizers = {{{"13a", tokenize_13a},
                                                        {"intl", tokenize_intl},
                                                        {"zh", tokenize_zh},
                                                        {"char", tokenize_char},
                                                        {"none", tokenize_none}}};

}  // namespace

void undo_xml_escapes(std::string& text) {
  if (text.find('&') == std::string::npos) return;
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

std::string split_ascii_symbols(std::string_view text) {
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    if (is_ascii_symbol(c)) {
      result.append({' ', c, ' '});
    } else {
      result.push_back(c);
    }
  }
  return result;
}

std::string split_points_and_dashes(std::string_view text) {
  const std::string before = rewrite_pairs(
      text, [](char a, char b) { return !is_digit(a) && is_point(b); },
      [](std::string& out, char a, char b) {
        out.append({a, ' ', b, ' '});
      });
  const std::string after = rewrite_pairs(
      before, [](char a, char b) { return is_point(a) && !is_digit(b); },
      [](std::string& out, char a, char b) {
        out.append({' ', a, ' ', b});
      });
  return rewrite_pairs(
      after, [](char a, char b) { return is_digit(a) && b == '-'; },
      [](std::string& out, char a, char b) {
        out.append({a, ' ', b, ' '});
      });
}

std::string split_western_punctuation(std::string_view text) {
  return split_points_and_dashes(split_ascii_symbols(text));
}

BleuTokenizer find_bleu_tokenizer(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedTokenizer& known : kTokenizers) {
    if (name == known.name) return known.tokenizer;
    names.emplace_back(known.name);
  }
  const auto meant = nearest(name, names);
  throw Error(ErrorCode::invalid_argument,
              "BLEU: tokenize must be 13a, intl, zh, char or none, got '" + name + "'",
              meant ? "did you mean '" + *meant + "'?" : "published scores use 13a");
}

}  // namespace heed
