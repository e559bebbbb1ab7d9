#include "infer/engine/text_pieces.h"

#include <algorithm>
#include <cstdlib>

#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// A longer sentence is cut: models are trained on shorter ones, and drop or repeat parts of others.
// Sentences of up to kMostBytes are not, because byte-level tokenizers need many tokens for them.
constexpr int64_t kMostTokens = 128, kMostBytes = 512;

// A piece whose translation failed is cut in two if it has more.
constexpr int64_t kFewestTokens = 24, kFewestBytes = 80;

// Longer runs without white space are data. The longest words of German have 80 letters.
constexpr int64_t kMostWordBytes = 200;

// Scripts that do not separate words: Thai, Lao, Myanmar, Khmer, Chinese and Japanese.
bool is_written_without_spaces(char32_t c) {
  return (c >= 0x0E00 && c <= 0x0EFF) || (c >= 0x1000 && c <= 0x109F) ||
         (c >= 0x1780 && c <= 0x17FF) || (c >= 0x2E80 && c <= 0x9FFF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE4F) ||
         (c >= 0xFF00 && c <= 0xFFEF) || (c >= 0x20000 && c <= 0x3FFFF);
}

// Ends a clause if white space follows, or by itself.
bool ends_clause(char32_t c) {
  return c == ',' || c == ';' || c == ':' || c == ')' || c == 0x2013 || c == 0x2014 || c == 0x2026;
}
bool is_wide_comma(char32_t c) { return c == 0x3001 || c == 0xFF0C || c == 0xFF1B || c == 0x060C; }

}  // namespace

int64_t find_cut(std::string_view text, TextSpan span) {
  const int64_t middle = (span.begin + span.end) / 2, quarter = (span.end - span.begin) / 4;
  constexpr int kCharacter = 0, kWord = 1, kClause = 2;
  int64_t cuts[] = {-1, -1, -1};
  char32_t before = 0;
  for (int64_t at = span.begin; at < span.end;) {
    const CodePoint c = decode_utf8(text, static_cast<size_t>(at));
    const int64_t next = at + static_cast<int64_t>(c.bytes);
    if (next >= span.end) break;
    const int kind = is_wide_comma(c.value) || (is_space(c.value) && ends_clause(before)) ? kClause
                     : is_space(c.value)                                                  ? kWord
                                         : kCharacter;
    const bool is_central = std::abs(next - middle) <= quarter;
    const bool is_nearer =
        cuts[kind] < 0 || std::abs(next - middle) < std::abs(cuts[kind] - middle);
    if ((is_central || kind == kCharacter) && is_nearer) cuts[kind] = next;
    before = c.value, at = next;
  }
  for (const int kind : {kClause, kWord}) {
    if (cuts[kind] >= 0) return cuts[kind];
  }
  return cuts[kCharacter];
}

TextSpan trimmed(std::string_view text, TextSpan span) {
  while (span.begin < span.end) {
    const CodePoint c = decode_utf8(text, static_cast<size_t>(span.begin));
    if (!is_space(c.value)) break;
    span.begin += static_cast<int64_t>(c.bytes);
  }
  while (span.begin < span.end) {
    const CodePoint c = decode_utf8_before(text, static_cast<size_t>(span.end));
    if (!is_space(c.value)) break;
    span.end -= static_cast<int64_t>(c.bytes);
  }
  return span;
}

std::optional<TextSpan> find_data(std::string_view text, TextSpan span) {
  if (span.end - span.begin <= kMostWordBytes) return std::nullopt;
  int64_t begin = span.begin;
  bool is_data = true;
  for (int64_t at = span.begin;;) {
    const bool is_end = at >= span.end;
    const CodePoint c = is_end ? CodePoint{} : decode_utf8(text, static_cast<size_t>(at));
    if (is_end || is_space(c.value)) {
      if (is_data && at - begin > kMostWordBytes) return TextSpan{begin, at};
      begin = at + static_cast<int64_t>(c.bytes), is_data = true;
    } else if (is_written_without_spaces(c.value)) {
      is_data = false;
    }
    if (is_end) return std::nullopt;
    at += static_cast<int64_t>(c.bytes);
  }
}

PieceLimits::PieceLimits(const Model& model, const TranslateOptions& options) : model_(model) {
  // Reserve for language tokens and the like.
  constexpr int64_t kReserve = 4;
  const auto prefix = static_cast<int64_t>(
      options.source_prefix.empty() ? 0
                                    : model.tokenizer().encode_ids(options.source_prefix).size());
  most_tokens_ = std::max<int64_t>(model.max_positions() - kReserve - prefix, 1);
}

bool PieceLimits::can_halve(std::string_view text) const {
  return static_cast<int64_t>(text.size()) > kFewestBytes && count(text) > kFewestTokens;
}

bool PieceLimits::fits(std::string_view text) const {
  const auto bytes = static_cast<int64_t>(text.size());
  // A token has at least one byte: most sentences fit without being tokenized.
  if (bytes < std::min(most_tokens_, kMostBytes)) return true;
  const int64_t tokens = count(text);
  return tokens <= most_tokens_ && (tokens <= kMostTokens || bytes <= kMostBytes);
}

int64_t PieceLimits::count(std::string_view text) const {
  // So long a text cannot fit; tokenizing it at every split would be slow.
  constexpr int64_t kMostBytesPerToken = 64;
  const int64_t limit = std::min(most_tokens_, std::max(kMostTokens, kMostBytes));
  if (static_cast<int64_t>(text.size()) > kMostBytesPerToken * limit) return most_tokens_ + 1;
  return static_cast<int64_t>(model_.tokenizer().encode_ids(text).size());
}

}  // namespace heed
