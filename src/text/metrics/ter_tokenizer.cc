#include "text/metrics/ter_tokenizer.h"

#include "text/metrics/bleu_tokenizers.h"
#include "text/metrics/metric_text.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

bool is_western_punctuation(char c) {
  return std::string_view(".,?:;!\"()").find(c) != std::string_view::npos;
}

bool is_asian_punctuation(char32_t c) {
  return c == 0x3001 || c == 0x3002 || (c >= 0x3008 && c <= 0x3011) ||
         (c >= 0x3014 && c <= 0x301f) || (c >= 0xff61 && c <= 0xff65) || c == 0x30fb ||
         // full-width . , ? : ; ! " ( )
         c == 0xff0e || c == 0xff0c || c == 0xff1f || c == 0xff1a || c == 0xff1b || c == 0xff01 ||
         c == 0xff02 || c == 0xff08 || c == 0xff09;
}

// Characters that are separate words. Hiragana and Katakana are not: Tercom splits runs of them only
// at the start of a text, which begins with a space here.
bool is_asian_word(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||  // ideographs
         (c >= 0x31c0 && c <= 0x31ef) || (c >= 0x2e80 && c <= 0x2eff) ||  // strokes, radicals
         (c >= 0x3300 && c <= 0x33ff) || (c >= 0xf900 && c <= 0xfaff) ||  // compatibility
         (c >= 0xfe30 && c <= 0xfe4f) ||
         // Enclosed letters end at U+32FF; sacreBLEU has 3f22, and scores must equal its scores.
         (c >= 0x3200 && c <= 0x3f22) || is_asian_punctuation(c);
}

std::string normalize_western(std::string text) {
  replace_all(text, "\n-", "");
  replace_all(text, "\n", " ");
  undo_xml_escapes(text);
  text = split_ascii_symbols(" " + text + " ");
  replace_all(text, "'s ", " 's ");
  return split_points_and_dashes(text);
}

std::string split_asian(std::string_view text) {
  std::string result;
  for (const char32_t c : code_points(text)) {
    const bool apart = is_asian_word(c);
    if (apart) result.push_back(' ');
    append_utf8(result, c);
    if (apart) result.push_back(' ');
  }
  return result;
}

std::string remove_asian_punctuation(std::string_view text) {
  std::u32string kept = code_points(text);
  std::erase_if(kept, is_asian_punctuation);
  return to_utf8(kept);
}

}  // namespace

std::string tokenize_for_ter(std::string_view text, const TerOptions& options) {
  std::string line(strip_end(text));
  if (!options.case_sensitive) line = lower(line);
  if (options.normalized) {
    line = normalize_western(std::move(line));
    if (options.asian_support) line = split_asian(line);
  }
  if (options.no_punct) {
    std::erase_if(line, is_western_punctuation);
    if (options.asian_support) line = remove_asian_punctuation(line);
  }
  return line;
}

}  // namespace heed
