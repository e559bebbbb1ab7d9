#include "infer/markup/protected_text.h"

#include <algorithm>
#include <numeric>

#include "infer/markup/word_links.h"
#include "text/markup/placeholders.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

constexpr int kMostPieces = 10;
constexpr std::string_view kPieceStart = "<ph";

std::string piece_text(size_t number) { return "<ph" + std::to_string(number) + ">"; }

std::string_view part(std::string_view text, TextSpan span) {
  return text.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
}
TextSpan span_of(size_t begin, size_t end) {
  return {static_cast<int64_t>(begin), static_cast<int64_t>(end)};
}

bool is_word(std::string_view word) {
  for (size_t at = 0; at < word.size();) {
    const CodePoint c = decode_utf8(word, at);
    if (is_letter(c.value) || is_number(c.value)) return true;
    at += c.bytes;
  }
  return false;
}

bool is_space_at(std::string_view text, size_t at) {
  return at < text.size() && is_space(decode_utf8(text, at).value);
}
bool is_space_before(std::string_view text, size_t at) {
  return at > 0 && is_space(decode_utf8_before(text, at).value);
}
// Where the last character of a text that is not empty begins.
size_t decode_before(std::string_view text) {
  return text.size() - decode_utf8_before(text, text.size()).bytes;
}
bool is_word_char_at(std::string_view text, size_t at) {
  if (at >= text.size()) return false;
  const char32_t c = decode_utf8(text, at).value;
  return is_letter(c) || is_number(c);
}
// Whether what follows would become a part of a protected span before it: "@tom" and "-s" or "s".
bool begins_word_part(std::string_view text, size_t at) {
  return is_word_char_at(text, at) ||
         (at < text.size() && text[at] == '-' && is_word_char_at(text, at + 1));
}
// Punctuation that has no space after it.
bool is_opening(std::string_view word) {
  for (const std::string_view mark : {"(", "[", "{", "¿", "¡", "„", "«", "‚", "「", "『"}) {
    if (word == mark) return true;
  }
  return false;
}

// The pieces in an answer: their places and numbers.
struct FoundPiece {
  TextSpan span;
  size_t number;
};
std::vector<FoundPiece> find_pieces(std::string_view answer) {
  std::vector<FoundPiece> found;
  for (size_t at = 0; (at = answer.find(kPieceStart, at)) != std::string_view::npos;) {
    const size_t digit = at + kPieceStart.size();
    if (digit + 1 < answer.size() && answer[digit] >= '0' && answer[digit] <= '9' &&
        answer[digit + 1] == '>') {
      found.push_back({span_of(at, digit + 2), static_cast<size_t>(answer[digit] - '0')});
      at = digit + 2;
    } else {
      ++at;
    }
  }
  return found;
}

constexpr size_t kNoSpan = std::string_view::npos;

// The span that holds byte `at`, of spans in order.
size_t span_at(const std::vector<TextSpan>& spans, int64_t at) {
  const auto after = std::ranges::upper_bound(spans, at, {}, &TextSpan::begin);
  if (after == spans.begin() || std::prev(after)->end <= at) return kNoSpan;
  return static_cast<size_t>(std::prev(after) - spans.begin());
}

// Where spans that the answer lacks are inserted.
class Gaps {
 public:
  Gaps(std::string_view source, std::string_view target, const WordLinks& links)
      : source_(source), target_(target), links_(links) {
    const auto count = static_cast<int64_t>(links.source.size());
    first_word_ = count, last_word_ = -1;
    for (int64_t s = 0; s < count; ++s) {
      if (!is_word(source_word(s))) continue;
      first_word_ = std::min(first_word_, s), last_word_ = s;
    }
  }

  // The target word before which a span belongs that is, or was, at these bytes of the source.
  int64_t gap_of(TextSpan span) const {
    const auto words = static_cast<int64_t>(links_.target.size());
    const int64_t left = links_.source_before(span.begin), right = links_.source_after(span.end);
    const auto source_words = static_cast<int64_t>(links_.source.size());
    if (left < first_word_) return leading_marks(left + 1);
    if (right > last_word_) return words - trailing_marks(source_words - right);
    // A word after it tells more than the one before it: "{count} files".
    if (right < source_words && is_word(source_word(right)) && first_of(right) >= 0) {
      return first_of(right);
    }
    if (left >= 0 && links_.last_of[static_cast<size_t>(left)] >= 0) {
      return links_.last_of[static_cast<size_t>(left)];
    }
    if (right < source_words && first_of(right) >= 0) return first_of(right);
    const int64_t before = left < 0 ? -1 : links_.linked_before[static_cast<size_t>(left)];
    if (before >= 0) return links_.last_of[static_cast<size_t>(before)];
    // Without alignments: in proportion.
    return source_words == 0 ? words : words * right / source_words;
  }

 private:
  std::string_view source_word(int64_t s) const {
    return part(source_, links_.source[static_cast<size_t>(s)]);
  }
  std::string_view target_word(int64_t t) const {
    return part(target_, links_.target[static_cast<size_t>(t)]);
  }
  int64_t first_of(int64_t s) const { return links_.first_of[static_cast<size_t>(s)]; }

  // How many of the first, or last, target words are punctuation; at most `most`.
  int64_t leading_marks(int64_t most) const {
    const auto words = static_cast<int64_t>(links_.target.size());
    int64_t count = 0;
    while (count < std::min(most, words) && !is_word(target_word(count))) ++count;
    return count;
  }
  int64_t trailing_marks(int64_t most) const {
    const auto words = static_cast<int64_t>(links_.target.size());
    int64_t count = 0;
    while (count < std::min(most, words) && !is_word(target_word(words - 1 - count))) ++count;
    return count;
  }

  std::string_view source_, target_;
  const WordLinks& links_;
  int64_t first_word_, last_word_;  // of the source: not punctuation
};

}  // namespace

int placeholder_pieces(const Tokenizer& tokenizer) {
  for (int i = 0; i < kMostPieces; ++i) {
    const std::string text = piece_text(static_cast<size_t>(i));
    const std::optional<int32_t> id = tokenizer.find(text);
    if (!id) return i;
    // It must be read from a text, and be written into one.
    const std::vector<int32_t> ids = tokenizer.encode_ids("a " + text, {.special_tokens = false});
    if (std::ranges::find(ids, *id) == ids.end()) return i;
    const std::vector<int32_t> alone{*id};
    if (tokenizer.decode(alone).find(text) == std::string::npos) return i;
  }
  return kMostPieces;
}

std::vector<TextSpan> protected_spans(std::string_view text, std::span<const TextSpan> fixed,
                                      std::span<const int64_t> cuts, bool join_neighbours) {
  std::vector<TextSpan> all = find_placeholders(text);
  all.insert(all.end(), fixed.begin(), fixed.end());
  std::ranges::sort(all, {}, &TextSpan::begin);
  std::vector<TextSpan> spans;
  constexpr int64_t kMostBetween = 3;
  for (const TextSpan& span : all) {
    bool joins = false;
    if (!spans.empty()) {
      const int64_t end = spans.back().end;
      joins = span.begin < end;  // a placeholder inside of a fixed part
      if (join_neighbours && !joins && span.begin - end <= kMostBetween) {
        const auto cut = std::ranges::lower_bound(cuts, end);
        const bool is_cut = cut != cuts.end() && *cut <= span.begin;
        const std::string_view between = part(text, {end, span.begin});
        joins = !is_cut && between.find_first_not_of(" ,;:/-()|+=&") == std::string_view::npos;
      }
    }
    if (joins) {
      spans.back().end = std::max(spans.back().end, span.end);
    } else {
      spans.push_back(span);
    }
  }
  return spans;
}

bool has_words_outside(std::string_view text, std::span<const TextSpan> spans) {
  size_t at = 0;
  for (const TextSpan& span : spans) {
    if (is_word(text.substr(at, static_cast<size_t>(span.begin) - at))) return true;
    at = static_cast<size_t>(span.end);
  }
  return is_word(text.substr(at));
}

ProtectedText::ProtectedText(std::string_view text, std::vector<TextSpan> spans, Method method,
                             int pieces)
    : text_(text), spans_(std::move(spans)), method_(method) {
  size_t at = 0;
  const auto copy = [&](size_t end) {
    for (; at < end; ++at) {
      masked_ += text_[at];
      sources_.push_back(static_cast<int64_t>(at));
    }
  };
  for (size_t i = 0; i < spans_.size(); ++i) {
    const auto begin = static_cast<size_t>(spans_[i].begin);
    const auto end = static_cast<size_t>(spans_[i].end);
    // A symbol before or after all words, such as an emoji, tells the model nothing.
    const bool is_symbol_at_edge =
        !is_word(part(text_, spans_[i])) && (!is_word(std::string_view(text_).substr(0, begin)) ||
                                             !is_word(std::string_view(text_).substr(end)));
    const bool is_piece =
        method == Method::pieces && i < static_cast<size_t>(pieces) && !is_symbol_at_edge;
    if (method == Method::kept || is_piece) {
      copy(begin);
      const size_t masked = masked_.size();
      masked_ += is_piece ? piece_text(i) : text_.substr(begin, end - begin);
      sources_.resize(masked_.size(), spans_[i].begin);
      replaced_.push_back(span_of(masked, masked_.size()));
      at = end;
      continue;
    }
    // With one of the spaces beside it: "Hi {name}, …" becomes "Hi, …".
    size_t keep = begin;
    const bool space_before = is_space_before(text_, begin), space_after = is_space_at(text_, end);
    if (space_before && !is_word_char_at(text_, end)) {
      while (keep > at && is_space_before(text_, keep)) {
        keep -= decode_utf8_before(text_, keep).bytes;
      }
    }
    copy(std::max(keep, at));
    at = end;
    if (masked_.empty() || is_space_before(masked_, masked_.size())) {
      while (is_space_at(text_, at)) at += decode_utf8(text_, at).bytes;
    } else if (!space_before && !space_after && is_word_char_at(text_, end)) {
      masked_ += ' ';  // "a{x}b" is two words
      sources_.push_back(spans_[i].begin);
    }
    replaced_.push_back(span_of(masked_.size(), masked_.size()));
  }
  copy(text_.size());
  sources_.push_back(static_cast<int64_t>(text_.size()));
}

std::optional<ProtectedText::Restored> ProtectedText::find_kept(
    std::string_view answer, std::span<const Alignment> alignments) const {
  Restored result{.text = std::string(answer),
                  .alignments = {alignments.begin(), alignments.end()},
                  .placed = std::vector<TextSpan>(spans_.size())};
  // Long ones first: "%s" may be a part of "%s%s".
  std::vector<size_t> order(spans_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto bytes = [&](size_t i) { return spans_[i].end - spans_[i].begin; };
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return bytes(a) > bytes(b); });
  std::vector<bool> taken(answer.size());
  const auto find = [&](std::string_view what) {
    for (size_t at = 0; (at = answer.find(what, at)) != std::string_view::npos; ++at) {
      if (!taken[at] && !taken[at + what.size() - 1]) return at;
    }
    return std::string_view::npos;
  };
  for (const size_t i : order) {
    const std::string_view what = part(text_, spans_[i]);
    const size_t at = find(what);
    if (at == std::string_view::npos) return std::nullopt;
    if (begins_word_part(answer, at + what.size()) &&
        !begins_word_part(text_, static_cast<size_t>(spans_[i].end))) {
      return std::nullopt;  // the model has extended it
    }
    result.placed[i] = span_of(at, at + what.size());
    for (size_t j = at; j < at + what.size(); ++j) taken[j] = true;
  }
  for (const size_t i : order) {
    const std::string_view what = part(text_, spans_[i]);
    // Another one is a double, unless the sentence has it outside of the spans too.
    if (find(what) != std::string_view::npos) return std::nullopt;
  }
  return result;
}

std::optional<ProtectedText::Restored> ProtectedText::restore(
    std::string_view answer, std::span<const Alignment> alignments) const {
  if (method_ == Method::kept) return find_kept(answer, alignments);
  // The pieces that are in the answer: the first of each number stays.
  const std::vector<FoundPiece> found =
      method_ == Method::pieces ? find_pieces(answer) : std::vector<FoundPiece>();
  std::vector<TextSpan> source_atoms, target_atoms;
  for (const TextSpan& span : replaced_) {
    if (span.begin < span.end) source_atoms.push_back(span);
  }
  for (const FoundPiece& piece : found) target_atoms.push_back(piece.span);
  const WordLinks links = link_words(masked_, source_atoms, answer, target_atoms, alignments);
  const size_t words = links.target.size();

  std::vector<size_t> span_of_word(words, kNoSpan);
  std::vector<bool> is_dropped(words), is_present(spans_.size());
  for (size_t w = 0, next = 0; w < words && next < found.size(); ++w) {
    if (links.target[w] != found[next].span) continue;
    const size_t number = found[next++].number;
    const bool is_used = number < spans_.size() && replaced_[number].begin < replaced_[number].end;
    if (is_used && !is_present[number]) {
      is_present[number] = true;
      span_of_word[w] = number;
    } else {
      is_dropped[w] = true;
    }
  }
  const Gaps gaps(masked_, answer, links);
  std::vector<std::vector<size_t>> inserted(words + 1);
  for (size_t i = 0; i < spans_.size(); ++i) {
    if (is_present[i]) continue;
    inserted[static_cast<size_t>(gaps.gap_of(replaced_[i]))].push_back(i);
  }

  Restored result;
  result.placed.resize(spans_.size());
  std::vector<int64_t> targets(answer.size() + 1);  // where each byte of the answer is in the text
  std::string& text = result.text;
  const auto place = [&](size_t i) {
    const size_t begin = text.size();
    text += part(text_, spans_[i]);
    result.placed[i] = span_of(begin, text.size());
  };
  size_t at = 0;  // of the answer
  const auto fill = [&](size_t end) {
    for (; at < end; ++at) targets[at] = static_cast<int64_t>(text.size());
  };
  // The spans before word `w`, with the space around them.
  const auto insert = [&](size_t w, std::string_view space) {
    const std::string_view next = w < words ? part(answer, links.target[w]) : std::string_view();
    for (size_t k = 0; k < inserted[w].size(); ++k) {
      const size_t i = inserted[w][k];
      const auto begin = static_cast<size_t>(spans_[i].begin);
      const bool is_glued = begin > 0 && !is_space_before(text_, begin);
      const bool after_opening =
          w > 0 && k == 0 && space.empty() && is_opening(part(answer, links.target[w - 1]));
      const bool needs_space = !text.empty() && !is_glued && !after_opening;
      if (needs_space && !is_space_before(text, text.size())) text += ' ';
      place(i);
    }
    if (inserted[w].empty()) {
      // At the beginning, a space was one after a word that was dropped.
      if (w == 0 || !text.empty()) text += space;
      return;
    }
    const auto end = static_cast<size_t>(spans_[inserted[w].back()].end);
    if (w == words) {
      text += space;
    } else if (begins_word_part(
                   answer.substr(static_cast<size_t>(links.target[w].begin) - space.size()), 0) &&
               !begins_word_part(text_, end)) {
      text += ' ';
      text += space;
    } else if (!is_word(next) && !is_opening(next)) {
      text += space;  // "{name}," as it was before the comma
    } else if (!is_word_char_at(text_, end)) {
      text += space.empty() ? " " : std::string(space);
    }
  };
  size_t last_end = 0;         // of the last word
  size_t last_span = kNoSpan;  // if the last word that was not dropped is a protected span
  for (size_t w = 0; w < words; ++w) {
    const auto begin = static_cast<size_t>(links.target[w].begin);
    const auto end = static_cast<size_t>(links.target[w].end);
    if (is_dropped[w]) {
      // Its spans are inserted all the same; the space before it is dropped with it.
      if (!inserted[w].empty()) insert(w, "");
      fill(end);
      last_end = end;
      continue;
    }
    const std::string_view space = answer.substr(last_end, begin - last_end);
    if (last_span != kNoSpan && inserted[w].empty() && begins_word_part(answer, last_end) &&
        !begins_word_part(text_, static_cast<size_t>(spans_[last_span].end))) {
      text += ' ';  // the model has glued a part of a word to it
    }
    insert(w, space);
    fill(begin);
    last_span = span_of_word[w];
    if (span_of_word[w] != kNoSpan) {
      const auto source = static_cast<size_t>(spans_[span_of_word[w]].begin);
      const bool is_glued_in_source = source > 0 && !is_space_before(text_, source);
      if (!text.empty() && !is_glued_in_source && is_word_char_at(text, decode_before(text))) {
        text += ' ';
      }
      fill(end);
      place(span_of_word[w]);
    } else {
      for (; at < end; ++at) {
        targets[at] = static_cast<int64_t>(text.size());
        text += answer[at];
      }
    }
    last_end = end;
  }
  insert(words, answer.substr(last_end));
  fill(answer.size());
  targets[answer.size()] = static_cast<int64_t>(text.size());

  std::vector<TextSpan> placed = result.placed;
  std::ranges::sort(placed, {}, &TextSpan::begin);
  for (Alignment alignment : alignments) {
    const auto first = static_cast<size_t>(alignment.source.begin);
    const auto last = static_cast<size_t>(alignment.source.end - 1);
    if (last >= masked_.size() || first > last) continue;  // truncated
    const size_t span = span_at(replaced_, alignment.source.end - 1);
    alignment.source =
        span == kNoSpan ? TextSpan{sources_[first], sources_[last] + 1} : spans_[span];
    // The last byte's place, and one more: behind the end may be an inserted span.
    alignment.target = {targets[static_cast<size_t>(alignment.target.begin)],
                        targets[static_cast<size_t>(alignment.target.end - 1)] + 1};
    const bool is_text = alignment.target.begin < static_cast<int64_t>(text.size()) &&
                         span_at(placed, alignment.target.end - 1) == kNoSpan;
    if (is_text) result.alignments.push_back(alignment);
  }
  for (size_t i = 0; i < spans_.size(); ++i) {
    result.alignments.push_back({.token = -1,
                                 .target = result.placed[i],
                                 .source = spans_[i],
                                 .source_token = -1,
                                 .weight = 1});
  }
  std::ranges::stable_sort(result.alignments, {},
                           [](const Alignment& a) { return a.target.begin; });
  return result;
}

}  // namespace heed
