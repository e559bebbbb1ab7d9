#include "text/markup/markdown_inline.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "text/markup/html.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

constexpr auto kNone = std::string_view::npos;
// Limits of CommonMark's implementations, which bound the time of "[a](" and the like.
constexpr int kMostParentheses = 32;
constexpr size_t kMostLabelBytes = 999;

bool is_space_char(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_ascii_punctuation(char c) {
  return is_ascii(c) && is_split_punctuation(static_cast<unsigned char>(c));
}

// What a range of the paragraph is, besides text.
struct Event {
  enum class Kind { open, close, empty, fixed, decoded, soft_break, boundary };
  Kind kind;
  size_t begin = 0, end = 0;
  size_t pair = 0;      // open, close
  std::string plain{};  // fixed, decoded
};

// A run of '*', '_' or "~~".
struct Delimiters {
  char c;
  size_t begin, end;  // unused ones
  bool can_open, can_close;
};

class Inline {
 public:
  Inline(std::string_view text, size_t begin, const std::vector<MarkdownBreak>& breaks,
         const LinkLabels& labels, MarkedTextBuilder& out)
      : text_(text), begin_(begin), breaks_(breaks), labels_(labels), out_(out) {}

  void parse() {
    find_backticks();
    for (at_ = begin_; at_ < text_.size();) step();
    pair_delimiters(0);
    emit();
  }

 private:
  char peek(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  void add(Event::Kind kind, size_t end, std::string plain = {}) {
    events_.push_back({.kind = kind, .begin = at_, .end = end, .plain = std::move(plain)});
    at_ = end;
  }

  // The end of the paragraph is that of text_.
  void step() {
    while (next_break_ < breaks_.size() && breaks_[next_break_].end <= at_) ++next_break_;
    if (next_break_ < breaks_.size() && breaks_[next_break_].begin <= at_) {
      const MarkdownBreak& b = breaks_[next_break_];
      add(b.is_hard ? Event::Kind::boundary : Event::Kind::soft_break, b.end);
      return;
    }
    switch (text_[at_]) {
      case '\\':
        return escape();
      case '`':
        return code_span();
      case '*':
      case '_':
      case '~':
        return delimiters();
      case '!':
        if (peek(at_ + 1) == '[') {
          brackets_.push_back({at_, at_ + 2, delimiters_.size()});
          at_ += 2;
          return;
        }
        break;
      case '[':
        if (peek(at_ + 1) == '^' && footnote()) return;
        brackets_.push_back({at_, at_ + 1, delimiters_.size()});
        break;
      case ']':
        return close_bracket();
      case '<':
        return angle();
      case '&':
        if (const auto entity = read_html_entity(text_, at_)) {
          const bool known = !entity->characters.empty();
          add(known ? Event::Kind::decoded : Event::Kind::fixed, entity->end,
              known ? entity->characters : std::string(text_.substr(at_, entity->end - at_)));
          return;
        }
        break;
      default:
        break;
    }
    ++at_;
  }

  void escape() {
    const char next = peek(at_ + 1);
    if (at_ + 1 < text_.size() && is_ascii_punctuation(next)) {
      add(Event::Kind::decoded, at_ + 2, std::string(1, next));
    } else {
      ++at_;
    }
  }

  // ---- Code spans ----

  void find_backticks() {
    for (size_t i = begin_; i < text_.size();) {
      size_t end = i;
      while (peek(end) == '`') ++end;
      if (end > i) backticks_[end - i].insert(i);
      i = std::max(end, i + 1);
    }
  }

  void code_span() {
    size_t end = at_;
    while (peek(end) == '`') ++end;
    const std::set<size_t>& same = backticks_[end - at_];
    const auto close = same.lower_bound(end);
    if (close == same.end()) {
      at_ = end;
      return;
    }
    std::string plain(text_.substr(end, *close - end));
    std::ranges::replace_if(
        plain, [](char c) { return c == '\n' || c == '\r'; }, ' ');
    add(Event::Kind::fixed, *close + (end - at_), std::move(plain));
  }

  // ---- Emphasis ----

  void delimiters() {
    const char c = text_[at_];
    size_t end = at_;
    while (peek(end) == c) ++end;
    const auto before = at_ > begin_ ? decode_utf8_before(text_, at_).value : U' ';
    const auto after = end < text_.size() ? decode_utf8(text_, end).value : U' ';
    const auto is_mark_char = [](char32_t x) {
      return x < 128 ? is_split_punctuation(x) : is_punctuation(x);
    };
    // Left- and right-flanking runs.
    const bool left =
        !is_space(after) && (!is_mark_char(after) || is_space(before) || is_mark_char(before));
    const bool right =
        !is_space(before) && (!is_mark_char(before) || is_space(after) || is_mark_char(after));
    const bool in_word = c == '_' && left && right;
    if (c != '~' || end - at_ == 2) {
      delimiters_.push_back({c, at_, end, left && (!in_word || is_mark_char(before)),
                             right && (!in_word || is_mark_char(after))});
    }
    at_ = end;
  }

  // Pairs the delimiters from `first` on, and removes them.
  void pair_delimiters(size_t first) {
    std::vector<Delimiters> open;
    std::map<char, int64_t> counts;  // of openers: a closer without one does not search
    for (size_t i = first; i < delimiters_.size(); ++i) {
      Delimiters run = delimiters_[i];
      while (run.can_close && run.begin < run.end && counts[run.c] > 0) {
        while (open.back().c != run.c) {
          --counts[open.back().c];
          open.pop_back();
        }
        Delimiters& opener = open.back();
        const size_t most = std::min(opener.end - opener.begin, run.end - run.begin);
        const size_t size = std::min<size_t>(most, 2);
        add_pair({opener.end - size, opener.end}, {run.begin, run.begin + size});
        opener.end -= size, run.begin += size;
        if (opener.begin == opener.end) {
          --counts[run.c];
          open.pop_back();
        }
      }
      if (run.can_open && run.begin < run.end) {
        ++counts[run.c];
        open.push_back(run);
      }
    }
    delimiters_.resize(first, Delimiters{});
  }

  using Range = std::pair<size_t, size_t>;
  void add_pair(Range open, Range close) {
    ++pairs_;
    events_.push_back(
        {.kind = Event::Kind::open, .begin = open.first, .end = open.second, .pair = pairs_});
    events_.push_back(
        {.kind = Event::Kind::close, .begin = close.first, .end = close.second, .pair = pairs_});
  }

  // ---- Links ----

  struct Bracket {
    size_t begin, end;  // "[" or "!["
    size_t delimiters;  // how many were before it
  };

  bool footnote() {
    const size_t end = label_end(at_ + 1);
    if (end == kNone) return false;
    add(Event::Kind::empty, end);
    return true;
  }

  void close_bracket() {
    if (brackets_.empty()) {
      ++at_;
      return;
    }
    const Bracket open = brackets_.back();
    brackets_.pop_back();
    const size_t close = at_;
    size_t end = destination_end(close + 1);
    if (end == kNone && peek(close + 1) == '[' && peek(close + 2) != ']') {
      end = label_end(close + 2);
    }
    if (end != kNone) {
      pair_delimiters(open.delimiters);
      add_pair({open.begin, open.end}, {close, end});
      at_ = end;
      return;
    }
    const std::string_view label = text_.substr(open.end, close - open.end);
    if (!labels_.empty() && label.size() <= kMostLabelBytes &&
        labels_.contains(link_label(label))) {
      // The text is the key of a definition.
      if (text_.substr(close).starts_with("][]")) at_ = close + 2;
      delimiters_.resize(std::min(delimiters_.size(), open.delimiters), Delimiters{});
      while (!events_.empty() && events_.back().begin >= open.begin) events_.pop_back();
      const size_t after = at_ + 1;
      at_ = open.begin;
      add(Event::Kind::fixed, after, std::string(label));
      return;
    }
    ++at_;
  }

  // The end of "(destination "title")" at `at`, or none.
  size_t destination_end(size_t at) const {
    if (peek(at) != '(') return kNone;
    ++at;
    const auto skip_space = [&] {
      while (is_space_char(peek(at))) ++at;
    };
    skip_space();
    if (peek(at) == '<') {
      ++at;
      while (at < text_.size() && text_[at] != '>' && text_[at] != '<' && text_[at] != '\n') ++at;
      if (peek(at) != '>') return kNone;
      ++at;
    } else {
      int depth = 0;
      for (; at < text_.size() && !is_space_char(text_[at]); ++at) {
        if (text_[at] == '\\') {
          ++at;
        } else if (text_[at] == '(') {
          if (++depth > kMostParentheses) return kNone;
        } else if (text_[at] == ')' && depth-- == 0) {
          break;
        }
      }
    }
    skip_space();
    const char quote = peek(at);
    if (quote == '"' || quote == '\'' || quote == '(') {
      const char last = quote == '(' ? ')' : quote;
      for (++at; at < text_.size() && text_[at] != last; ++at) {
        if (text_[at] == '\\') ++at;
        if (quote == '(' && peek(at) == '(') return kNone;
      }
      if (peek(at) != last) return kNone;
      ++at;
      skip_space();
    }
    return peek(at) == ')' ? at + 1 : kNone;
  }

  // The end of a label and its bracket.
  size_t label_end(size_t at) const {
    const size_t most = std::min(text_.size(), at + kMostLabelBytes);
    for (size_t i = at; i < most; ++i) {
      if (text_[i] == '\\') ++i;
      if (peek(i) == '[' || peek(i) == '\n') return kNone;
      if (peek(i) == ']') return i > at ? i + 1 : kNone;
    }
    return kNone;
  }

  // ---- HTML and autolinks ----

  void angle() {
    if (const size_t end = autolink_end(); end != kNone) {
      add(Event::Kind::fixed, end, std::string(text_.substr(at_ + 1, end - at_ - 2)));
      return;
    }
    std::optional<HtmlTag> tag;
    if (may_be_html_tag(text_, at_) && failed_bytes_ <= kMostFailures * (text_.size() - begin_)) {
      tag = read_html_tag(text_, at_);
      if (!tag) failed_bytes_ += text_.size() - at_;
    }
    if (!tag) {
      ++at_;
      return;
    }
    if (tag->kind == HtmlTag::Kind::other) return add(Event::Kind::empty, tag->end);
    if (is_html_block(tag->name)) return add(Event::Kind::boundary, tag->end);
    if (tag->kind == HtmlTag::Kind::start && !tag->is_empty) {
      if (const size_t end = untouched_end(*tag); end != kNone) {
        add(Event::Kind::fixed, end,
            std::string(text_.substr(tag->end, text_.rfind('<', end - 1) - tag->end)));
        return;
      }
    }
    html_.push_back({at_, tag->end, std::move(*tag)});
    at_ = html_.back().end;
  }

  size_t autolink_end() const {
    const size_t most = std::min(text_.size(), at_ + 2048);
    bool has_mark = false;
    for (size_t i = at_ + 1; i < most; ++i) {
      const char c = text_[i];
      if (c == '>') return has_mark && i > at_ + 3 ? i + 1 : kNone;
      if (c == '<' || is_space_char(c) || c == '"') return kNone;
      has_mark = has_mark || c == ':' || c == '@';
    }
    return kNone;
  }

  // The end of an inline element whose content is copied.
  size_t untouched_end(const HtmlTag& tag) {
    static constexpr std::array<std::string_view, 6> kNames{"code", "kbd", "samp",
                                                            "tt",   "var", "svg"};
    if (!tag.is_untouched && std::ranges::find(kNames, tag.name) == kNames.end()) return kNone;
    if (without_end_.contains(tag.name)) return kNone;
    const std::string close = "</" + tag.name + ">";
    const size_t found = text_.find(close, tag.end);
    if (found != kNone) return found + close.size();
    without_end_.insert(tag.name);  // nor has a later one
    return kNone;
  }

  // ---- Output ----

  struct HtmlRange {
    size_t begin, end;
    HtmlTag tag;
  };

  void emit() {
    std::ranges::stable_sort(events_, {}, &Event::begin);
    size_t at = begin_, next_html = 0;
    const auto html_until = [&](size_t end) {
      for (; next_html < html_.size() && html_[next_html].begin < end; ++next_html) {
        const HtmlRange& range = html_[next_html];
        if (range.begin < at) continue;  // inside a fixed part
        plain(at, range.begin);
        using Kind = Mark::Kind;
        const HtmlTag& tag = range.tag;
        const bool is_empty = tag.is_empty || is_void(tag.name);
        out_.mark(tag.kind == HtmlTag::Kind::end ? Kind::close
                  : is_empty                     ? Kind::empty
                                                 : Kind::open,
                  "<" + tag.name, range.begin, range.end);
        at = range.end;
      }
    };
    for (const Event& event : events_) {
      if (event.begin < at) continue;  // inside a fixed part
      html_until(event.begin);
      if (event.begin < at) continue;
      plain(at, event.begin);
      at = event.end;
      const std::string name = std::to_string(event.pair);
      switch (event.kind) {
        case Event::Kind::open:
          out_.mark(Mark::Kind::open, name, event.begin, event.end);
          break;
        case Event::Kind::close:
          out_.mark(Mark::Kind::close, name, event.begin, event.end);
          break;
        case Event::Kind::empty:
          out_.mark(Mark::Kind::empty, {}, event.begin, event.end);
          break;
        case Event::Kind::fixed:
          out_.fixed(event.plain, event.begin, event.end);
          break;
        case Event::Kind::decoded:
          out_.decoded(event.plain, event.begin);
          break;
        case Event::Kind::soft_break:
          out_.soft_break(event.begin, event.end);
          break;
        case Event::Kind::boundary:
          out_.copy(event.begin, event.end);
          break;
      }
    }
    html_until(text_.size());
    plain(at, text_.size());
  }

  static bool is_void(std::string_view name) {
    return name == "img" || name == "input" || name == "wbr" || name == "embed" || name == "area";
  }

  void plain(size_t begin, size_t end) {
    if (begin >= end) return;
    for (const char c : text_.substr(begin, end - begin)) {
      if (is_ascii_punctuation(c)) out_.literal(c);
    }
    out_.text(begin, end);
  }

  static constexpr size_t kMostFailures = 4;  // as in html.cc

  std::string_view text_;  // up to the end of the paragraph
  size_t begin_, at_ = 0;
  const std::vector<MarkdownBreak>& breaks_;
  const LinkLabels& labels_;
  MarkedTextBuilder& out_;
  size_t next_break_ = 0, pairs_ = 0, failed_bytes_ = 0;
  std::vector<Event> events_;
  std::vector<HtmlRange> html_;
  std::vector<Delimiters> delimiters_;
  std::vector<Bracket> brackets_;
  std::map<size_t, std::set<size_t>> backticks_;  // length → positions
  std::set<std::string> without_end_;
};

}  // namespace

std::string link_label(std::string_view label) {
  std::string normal;
  bool space = false;
  for (size_t at = 0; at < label.size();) {
    const CodePoint c = decode_utf8(label, at);
    at += c.bytes;
    if (is_space(c.value)) {
      space = !normal.empty();
      continue;
    }
    if (space) normal += ' ';
    space = false;
    append_lower(normal, c.value);
  }
  return normal;
}

void parse_markdown_inline(std::string_view markdown, size_t begin, size_t end,
                           const std::vector<MarkdownBreak>& breaks, const LinkLabels& labels,
                           MarkedTextBuilder& builder) {
  Inline(markdown.substr(0, end), begin, breaks, labels, builder).parse();
}

}  // namespace heed
