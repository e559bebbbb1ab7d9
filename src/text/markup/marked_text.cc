#include "text/markup/marked_text.h"

#include <algorithm>

#include "base/check.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

bool is_blank(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (!is_space(c.value)) return false;
    at += c.bytes;
  }
  return true;
}

TextSpan span_of(size_t begin, size_t end) {
  return {static_cast<int64_t>(begin), static_cast<int64_t>(end)};
}

bool is_ascii_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string_view html_escape(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    default:
      return {};
  }
}

// Whether a character of Markdown would be read as markup.
bool is_markdown(std::string_view text, size_t at, bool is_first) {
  const char c = text[at], next = at + 1 < text.size() ? text[at + 1] : '\0';
  const auto is_word = [&](size_t i) {
    return i < text.size() && (is_ascii_alnum(text[i]) || !is_ascii(text[i]));
  };
  switch (c) {
    case '\\':
    case '*':
    case '`':
    case '[':
    case ']':
      return true;
    case '_':
      return at == 0 || !is_word(at - 1) || !is_word(at + 1);  // not snake_case
    case '~':
      return next == '~' || (at > 0 && text[at - 1] == '~');
    case '|':
      return true;
    case '<':
      return next == '/' || next == '!' || next == '?' || is_ascii_alnum(next);
    case '&':
      return next == '#' || is_ascii_alnum(next);
    case '#':
    case '>':
      return is_first;
    case '-':
    case '+':
      return is_first && (next == ' ' || next == '\0' || next == '-');
    default:
      return false;
  }
}

}  // namespace

size_t append_escaped(std::string& out, std::string_view text, size_t at, const TextBlock& block,
                      bool is_first) {
  constexpr std::string_view kNoBreakSpace = "\u00A0";
  const char c = text[at];
  if (block.markup == Markup::html) {
    if (text.substr(at).starts_with(kNoBreakSpace)) {
      out += "&nbsp;";
      return kNoBreakSpace.size();
    }
    if (const std::string_view escape = html_escape(c); !escape.empty()) {
      out += escape;
      return 1;
    }
  } else if (is_ascii(c) && block.literals.find(c) == std::string::npos &&
             is_markdown(text, at, is_first)) {
    out += '\\';
  }
  const size_t bytes = decode_utf8(text, at).bytes;
  out += text.substr(at, bytes);
  return bytes;
}

void MarkedTextBuilder::begin_block(size_t at) {
  if (has_block_) return;
  has_block_ = true, is_visible_ = false, block_begin_ = at;
}

void MarkedTextBuilder::append(std::string_view characters, size_t source) {
  block_.text += characters;
  block_.sources.resize(block_.text.size(), static_cast<int64_t>(source));
}

// Line breaks at the ends of a block stay as they are; one inside becomes a space.
void MarkedTextBuilder::flush_break(bool is_visible) {
  if (break_.empty()) return;
  const std::string space = std::exchange(break_, {});
  if (!is_visible || !is_visible_) {
    append(space, break_begin_);
  } else if (!block_.text.ends_with(' ')) {
    append(" ", break_begin_);
  }
}

void MarkedTextBuilder::text(size_t begin, size_t end) {
  if (begin == end) return;
  begin_block(begin);
  const std::string_view characters = document_.substr(begin, end - begin);
  const bool blank = is_blank(characters);
  if (blank && !break_.empty()) {
    break_ += characters;
    return;
  }
  flush_break(!blank);
  block_.text += characters;
  for (size_t i = begin; i < end; ++i) block_.sources.push_back(static_cast<int64_t>(i));
  is_visible_ = is_visible_ || !blank;
}

void MarkedTextBuilder::decoded(std::string_view characters, size_t begin) {
  begin_block(begin);
  const bool blank = is_blank(characters);
  flush_break(!blank);
  append(characters, begin);
  is_visible_ = is_visible_ || !blank;
}

void MarkedTextBuilder::soft_break(size_t begin, size_t end) {
  begin_block(begin);
  if (break_.empty()) break_begin_ = begin;
  break_ += document_.substr(begin, end - begin);
}

void MarkedTextBuilder::mark(Mark::Kind kind, std::string_view name, size_t begin, size_t end) {
  begin_block(begin);
  if (!is_visible_) flush_break(false);
  const auto index = static_cast<int64_t>(block_.marks.size());
  Mark mark{
      .kind = kind, .at = static_cast<int64_t>(block_.text.size()), .raw = span_of(begin, end)};
  if (kind == Mark::Kind::open) {
    open_.emplace_back(name, index);
    ++open_names_[std::string(name)];
  }
  // Without the count, each unmatched close mark would search all open ones.
  if (kind == Mark::Kind::close && open_names_[std::string(name)] > 0) {
    while (mark.partner < 0) {
      const auto [open_name, open] = std::move(open_.back());
      open_.pop_back();
      --open_names_[open_name];
      if (open_name != name) continue;
      mark.partner = open;
      block_.marks[static_cast<size_t>(open)].partner = index;
    }
  }
  block_.marks.push_back(mark);
}

void MarkedTextBuilder::fixed(std::string_view plain, size_t begin, size_t end) {
  if (is_blank(plain)) {
    mark(Mark::Kind::empty, {}, begin, end);
    return;
  }
  begin_block(begin);
  flush_break(true);
  const size_t at = block_.text.size();
  append(plain, begin);
  block_.fixed.push_back({.text = span_of(at, block_.text.size()), .raw = span_of(begin, end)});
  is_visible_ = true;
}

void MarkedTextBuilder::literal(char c) {
  if (block_.literals.find(c) == std::string::npos) block_.literals += c;
}

void MarkedTextBuilder::end_block(size_t at) {
  if (!has_block_) return;
  flush_break(false);
  has_block_ = false;
  open_.clear();
  open_names_.clear();
  TextBlock block = std::exchange(block_, {});
  if (!is_visible_) {
    copy_span(block_begin_, at);
    return;
  }
  block.markup = markup_;
  block.sources.push_back(static_cast<int64_t>(at));
  result_.parts.push_back(
      {.raw = span_of(block_begin_, at), .block = static_cast<int64_t>(result_.blocks.size())});
  result_.blocks.push_back(std::move(block));
}

void MarkedTextBuilder::copy_span(size_t begin, size_t end) {
  if (begin == end) return;
  if (!result_.parts.empty() && result_.parts.back().block < 0) {
    result_.parts.back().raw.end = static_cast<int64_t>(end);
  } else {
    result_.parts.push_back({.raw = span_of(begin, end)});
  }
}

void MarkedTextBuilder::copy(size_t begin, size_t end) {
  end_block(begin);
  copy_span(begin, end);
}

MarkedText MarkedTextBuilder::finish() && {
  end_block(document_.size());
  int64_t at = 0;
  for (const MarkedText::Part& part : result_.parts) {
    HEED_CHECK(part.raw.begin == at, "markup: the parts must cover the document");
    at = part.raw.end;
  }
  HEED_CHECK(at == static_cast<int64_t>(document_.size()),
             "markup: the parts must cover the document");
  return std::move(result_);
}

}  // namespace heed
