#include "text/tokenizer_json/split_patterns.h"

#include <array>
#include <cstdint>

#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

enum class Kind : uint8_t { letter, number, space, other };

constexpr std::array<Kind, 128> ascii_kinds() {
  std::array<Kind, 128> kinds{};
  for (size_t c = 0; c < 128; ++c) {
    const uint8_t bits = unicode_detail::kAscii[c];
    kinds[c] = bits == unicode_detail::kLetter   ? Kind::letter
               : bits == unicode_detail::kNumber ? Kind::number
               : bits == unicode_detail::kSpace  ? Kind::space
                                                 : Kind::other;
  }
  return kinds;
}
constexpr std::array<Kind, 128> kAsciiKinds = ascii_kinds();

Kind kind_of(char32_t c) {
  if (c < 128) return kAsciiKinds[c];
  if (is_letter(c)) return Kind::letter;
  if (is_number(c)) return Kind::number;
  return is_space(c) ? Kind::space : Kind::other;
}

struct Character {
  Kind kind = Kind::other;
  size_t bytes = 0;
};

Character character_at(std::string_view text, size_t at) {
  if (is_ascii(text[at])) return {kAsciiKinds[static_cast<unsigned char>(text[at])], 1};
  const CodePoint c = decode_utf8(text, at);
  return {kind_of(c.value), c.bytes};
}

// The end of the run of characters of one kind from `at`, of at most `limit` characters.
size_t run_end(std::string_view text, size_t at, Kind kind, size_t limit = SIZE_MAX) {
  for (size_t count = 0; count < limit && at < text.size(); ++count) {
    const Character c = character_at(text, at);
    if (c.kind != kind) break;
    at += c.bytes;
  }
  return at;
}

// \s+(?!\S)|\s+ : all white space except the last character before a word.
size_t space_end(std::string_view text, size_t at, size_t end) {
  if (end == text.size()) return end;
  const size_t last = end - decode_utf8_before(text, end).bytes;
  return last > at ? last : end;
}

// The end of 's|'t|'re|'ve|'m|'ll|'d at an apostrophe; `at` when none matches.
size_t contraction_end(std::string_view text, size_t at, bool any_case) {
  const auto letter = [&](size_t index) -> char {
    if (index >= text.size()) return '\0';
    const char c = text[index];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = letter(at + 1), second = letter(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  const bool two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                   (first == 'l' && second == 'l');
  if (two) return at + 3;
  // ſ matches s when case is ignored.
  constexpr std::string_view kLongS = "\u017F";
  if (any_case && text.substr(at + 1, kLongS.size()) == kLongS) return at + 1 + kLongS.size();
  return at;
}

size_t llama_piece_end(std::string_view text, size_t at, size_t digits) {
  if (text[at] == '\'') {
    const size_t end = contraction_end(text, at, true);
    if (end > at) return end;
  }
  const Character first = character_at(text, at);
  if (first.kind == Kind::letter) return run_end(text, at + first.bytes, Kind::letter);
  if (first.kind == Kind::number) return run_end(text, at, Kind::number, digits);

  // One space or other character may precede a word; a space may precede a run of others.
  const bool breaks_line = text[at] == '\r' || text[at] == '\n';
  const size_t second_at = at + first.bytes;
  const Character second =
      second_at < text.size() ? character_at(text, second_at) : Character{Kind::space, 0};
  if (second.kind == Kind::letter && !breaks_line) {
    return run_end(text, second_at + second.bytes, Kind::letter);
  }
  if (first.kind == Kind::other || (text[at] == ' ' && second.kind == Kind::other)) {
    size_t end = run_end(text, second_at, Kind::other);
    while (end < text.size() && (text[end] == '\r' || text[end] == '\n')) ++end;
    return end;
  }
  const size_t end = run_end(text, at, Kind::space);
  // \s*[\r\n]+ : up to the last line break of the white space.
  const size_t line_break = text.substr(at, end - at).find_last_of("\r\n");
  if (line_break != std::string_view::npos) return at + line_break + 1;
  return space_end(text, at, end);
}

}  // namespace

size_t gpt2_piece_end(std::string_view text, size_t at) {
  if (text[at] == '\'') {
    const size_t end = contraction_end(text, at, false);
    if (end > at) return end;
  }
  const Character first = character_at(text, at);
  if (first.kind != Kind::space) return run_end(text, at + first.bytes, first.kind);
  if (text[at] == ' ' && at + 1 < text.size()) {
    const Character second = character_at(text, at + 1);
    if (second.kind != Kind::space) return run_end(text, at + 1 + second.bytes, second.kind);
  }
  return space_end(text, at, run_end(text, at, Kind::space));
}

size_t llama3_piece_end(std::string_view text, size_t at) { return llama_piece_end(text, at, 3); }
size_t qwen2_piece_end(std::string_view text, size_t at) { return llama_piece_end(text, at, 1); }

PieceEnd find_split_pattern(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return gpt2_piece_end;
  if (pattern == kLlama3Pattern) return llama3_piece_end;
  if (pattern == kQwen2Pattern) return qwen2_piece_end;
  return nullptr;
}

}  // namespace heed
