#include "text/markup/markdown.h"

#include <algorithm>
#include <array>

#include "text/markup/html.h"
#include "text/markup/markdown_inline.h"

namespace heed {
namespace {

constexpr auto kNone = std::string_view::npos;

bool is_blank_char(char c) { return c == ' ' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Line {
  size_t begin, end, next;  // `end` without the line break, `next` after it
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank_char(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank_char(text.back())) text.remove_suffix(1);
  return text;
}

bool consists_of(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == kNone;
}

// "---", "* * *": at least three.
bool is_thematic_break(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || std::string_view("-*_").find(text[0]) == kNone) return false;
  const char set[]{text[0], ' ', '\t'};
  return consists_of(text, {set, 3}) && std::ranges::count(text, text[0]) >= 3;
}

// "| --- | :-: |"
bool is_table_rule(std::string_view text) {
  text = trimmed(text);
  return text.find('-') != kNone && text.find('|') != kNone && consists_of(text, "|:- \t");
}

// How many '`' or '~' open a fence at the beginning; 0: none.
size_t fence_size(std::string_view text) {
  if (text.empty() || (text[0] != '`' && text[0] != '~')) return 0;
  const size_t size = std::min(text.find_first_not_of(text[0]), text.size());
  const bool is_span = text[0] == '`' && text.find('`', size) != kNone;
  return size >= 3 && !is_span ? size : 0;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), out_(text, Markup::markdown) {
    for (size_t at = 0; at < text.size();) {
      const size_t found = std::min(text.find('\n', at), text.size());
      const size_t next = std::min(found + 1, text.size());
      const bool has_return = found > at && text[found - 1] == '\r';
      lines_.push_back({at, has_return ? found - 1 : found, next});
      at = next;
    }
    read_labels();
  }

  MarkedText parse() && {
    front_matter();
    while (line_ < lines_.size()) block();
    end_paragraph();
    return std::move(out_).finish();
  }

 private:
  std::string_view content(size_t begin, const Line& line) const {
    return text_.substr(begin, line.end - begin);
  }
  std::string_view whole(const Line& line) const { return content(line.begin, line); }

  // "[label]: destination". Returns the bytes up to the colon and after it; 0: it is none.
  static size_t definition_bytes(std::string_view text) {
    if (!text.starts_with('[')) return 0;
    const size_t close = text.find("]:");
    if (close == kNone || close < 2 || text.substr(1, close - 1).find_first_of("[]") != kNone) {
      return 0;
    }
    return close + 2;
  }

  void read_labels() {
    for (const Line& line : lines_) {
      const std::string_view text = trimmed(whole(line));
      const size_t bytes = definition_bytes(text);
      if (bytes > 0 && text[1] != '^') labels_.insert(link_label(text.substr(1, bytes - 3)));
    }
  }

  void copy_lines(size_t count) {
    for (; count > 0 && line_ < lines_.size(); --count, ++line_) {
      out_.copy(lines_[line_].begin, lines_[line_].next);
    }
  }

  // "---" or "+++" around settings at the beginning of the document.
  void front_matter() {
    if (lines_.empty()) return;
    const std::string_view fence = whole(lines_[0]);
    if (fence != "---" && fence != "+++") return;
    for (size_t i = 1; i < lines_.size(); ++i) {
      if (whole(lines_[i]) == fence) return copy_lines(i + 1);
    }
  }

  // ---- Prefixes ----

  struct Prefix {
    size_t end = 0;     // where the text begins
    size_t indent = 0;  // white space before it, after quotes and list markers
    size_t quotes = 0;  // ">"
    bool is_item = false;
  };

  Prefix read_prefix(const Line& line) const {
    Prefix prefix{.end = line.begin};
    // Each level looks at the rest of the line, which "- - - a" would make slow.
    constexpr int kMostLevels = 64;
    for (int level = 0; level < kMostLevels; ++level) {
      size_t at = prefix.end;
      while (at < line.end && is_blank_char(text_[at])) ++at;
      prefix.indent = at - prefix.end;
      if (at >= line.end) break;
      if (text_[at] == '>' && prefix.indent < 4) {
        prefix.end = at + 1, ++prefix.quotes;
        if (prefix.end < line.end && text_[prefix.end] == ' ') ++prefix.end;
        continue;
      }
      const size_t marker = list_marker_end(at, line);
      const bool is_code = prefix.indent >= 4 + list_indent_ && paragraph_.empty();
      if (marker > at && !is_code && !is_thematic_break(content(at, line))) {
        prefix.end = marker, prefix.is_item = true;
        continue;
      }
      break;
    }
    return prefix;
  }

  // "- ", "* ", "+ ", "1. ", "2) "; with the box of a task.
  size_t list_marker_end(size_t at, const Line& line) const {
    size_t end = at;
    if (std::string_view("-*+").find(text_[at]) != kNone) {
      end = at + 1;
    } else {
      while (end < line.end && is_digit(text_[end]) && end - at < 9) ++end;
      if (end == at || end >= line.end || (text_[end] != '.' && text_[end] != ')')) return at;
      // In a paragraph only 1 begins a list: a line may begin with "1986. ".
      if (!paragraph_.empty() && !in_list_ && text_.substr(at, end - at) != "1") return at;
      ++end;
    }
    if (end < line.end && !is_blank_char(text_[end])) return at;
    if (end == line.end) return paragraph_.empty() ? end : at;
    ++end;
    const std::string_view rest = content(end, line);
    const bool is_task = rest.size() > 3 && rest[0] == '[' && rest[2] == ']' && rest[3] == ' ' &&
                         std::string_view(" xX").find(rest[1]) != kNone;
    return end + (is_task ? 4 : 0);
  }

  // ---- Blocks ----

  void block() {
    const Line& line = lines_[line_];
    if (trimmed(whole(line)).empty()) {
      end_paragraph();
      copy_lines(1);
      after_blank_ = true;
      return;
    }
    Prefix prefix = read_prefix(line);
    size_t at = prefix.end;
    while (at < line.end && is_blank_char(text_[at])) ++at;
    const std::string_view text = content(at, line);
    const bool was_blank = std::exchange(after_blank_, false);
    if (prefix.is_item) {
      in_list_ = true, list_indent_ = at - line.begin;
    } else if (was_blank && prefix.indent == 0 && prefix.quotes == 0) {
      in_list_ = false, list_indent_ = 0;
    }
    const bool starts = prefix.is_item || prefix.quotes != quotes_;
    quotes_ = prefix.quotes;
    // A line of a paragraph may be indented as it likes.
    const size_t code_indent = 4 + (prefix.is_item ? 0 : list_indent_);
    if ((paragraph_.empty() || starts) && prefix.indent >= code_indent) {
      end_paragraph();
      return copy_lines(1);
    }
    if (text.empty()) {
      end_paragraph();
      return copy_lines(1);
    }
    if (const size_t size = fence_size(text)) return fence(text[0], size);
    if (const char c = text[0]; !paragraph_.empty() && !starts && (c == '=' || c == '-') &&
                                consists_of(trimmed(text), std::string_view(&c, 1))) {
      end_paragraph();  // the line under a heading
      return copy_lines(1);
    }
    if (is_thematic_break(text)) {
      end_paragraph();
      return copy_lines(1);
    }
    if (const size_t heading = heading_bytes(text)) return heading_text(at + heading);
    if (paragraph_.empty() || starts) {
      if (const size_t bytes = definition_bytes(text)) {
        end_paragraph();
        if (text[1] != '^') return copy_lines(1);
        at += bytes;
        while (at < line.end && is_blank_char(text_[at])) ++at;
      } else if (line_ + 1 < lines_.size() && text.find('|') != kNone &&
                 is_table_rule(rest_of(lines_[line_ + 1]))) {
        return table();
      }
    }
    // In a list or a quote, tags are inline: their lines have other syntax before them.
    if (prefix.end == line.begin && html_block(text, prefix.indent)) return;
    if (starts) end_paragraph();
    paragraph_.push_back({at, line_});
    ++line_;
  }

  std::string_view rest_of(const Line& line) const {
    size_t at = line.begin;
    while (at < line.end && (is_blank_char(text_[at]) || text_[at] == '>')) ++at;
    return content(at, line);
  }

  void fence(char c, size_t size) {
    end_paragraph();
    copy_lines(1);
    while (line_ < lines_.size()) {
      const std::string_view text = trimmed(rest_of(lines_[line_]));
      copy_lines(1);
      if (text.size() >= size && consists_of(text, std::string_view(&c, 1))) return;
    }
  }

  // "## ": the bytes before the text; 0: no heading.
  static size_t heading_bytes(std::string_view text) {
    const size_t level = std::min(text.find_first_not_of('#'), text.size());
    if (level == 0 || level > 6) return 0;
    if (level < text.size() && !is_blank_char(text[level])) return 0;
    return std::min(text.find_first_not_of(" \t", level), text.size());
  }

  // The current line, whose text is from `begin` on.
  void heading_text(size_t begin) {
    end_paragraph();
    const Line& line = lines_[line_++];
    size_t end = line.end;
    while (end > begin && is_blank_char(text_[end - 1])) --end;
    size_t hashes = end;  // "## text ##"
    while (hashes > begin && text_[hashes - 1] == '#') --hashes;
    if (hashes == begin || is_blank_char(text_[hashes - 1])) end = hashes;
    while (end > begin && is_blank_char(text_[end - 1])) --end;
    span(line.begin, begin, end, line.next);
  }

  // Copies [first, begin) and [end, last); [begin, end) is text.
  void span(size_t first, size_t begin, size_t end, size_t last) {
    out_.copy(first, begin);
    parse_markdown_inline(text_, begin, end, {}, labels_, out_);
    out_.copy(end, last);
  }

  void table() {
    end_paragraph();
    table_row(lines_[line_++]);
    copy_lines(1);
    for (; line_ < lines_.size(); ++line_) {
      const std::string_view row = whole(lines_[line_]);
      if (trimmed(row).empty() || row.find('|') == kNone) return;
      table_row(lines_[line_]);
    }
  }

  void table_row(const Line& line) {
    size_t cell = line.begin, done = line.begin;
    for (size_t at = line.begin; at <= line.end; ++at) {
      if (at < line.end && text_[at] == '\\') {
        ++at;
        continue;
      }
      if (at < line.end && text_[at] != '|') continue;
      size_t begin = cell, end = std::min(at, line.end);
      while (begin < end && (is_blank_char(text_[begin]) || text_[begin] == '>')) ++begin;
      while (end > begin && is_blank_char(text_[end - 1])) --end;
      span(done, begin, end, end);
      done = end, cell = at + 1;
    }
    out_.copy(done, line.next);
  }

  // Lines of HTML: up to their end, or to a blank line.
  bool html_block(std::string_view text, size_t indent) {
    if (!text.starts_with('<') || indent >= 4) return false;
    std::string_view end;
    if (text.starts_with("<!--")) {
      end = "-->";
    } else if (text.starts_with("<?")) {
      end = "?>";
    } else if (!may_be_html_tag(text, 0)) {
      return false;
    }
    std::string closing;
    if (end.empty()) {
      size_t name = text.starts_with("</") ? 2 : 1;
      const size_t name_end = std::min(text.find_first_of(" \t/>", name), text.size());
      std::string lower(text.substr(name, name_end - name));
      std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      static constexpr std::array<std::string_view, 4> kUntilClosed{"pre", "script", "style",
                                                                    "textarea"};
      if (std::ranges::find(kUntilClosed, lower) != kUntilClosed.end()) {
        closing = "</" + lower + ">", end = closing;
      } else if (!is_html_block(lower) && !text.starts_with("<!")) {
        // Another tag must be alone on its line, and not in a paragraph.
        const std::optional<HtmlTag> tag =
            paragraph_.empty() ? read_html_tag(text, 0) : std::nullopt;
        if (!tag || !trimmed(text.substr(tag->end)).empty()) return false;
      }
    }
    end_paragraph();
    const size_t begin = lines_[line_].begin;
    for (; line_ < lines_.size(); ++line_) {
      const std::string_view next = whole(lines_[line_]);
      if (end.empty() ? trimmed(next).empty() : false) break;
      if (!end.empty() && next.find(end) != kNone) {
        ++line_;
        break;
      }
    }
    parse_html_part(text_, begin, line_ < lines_.size() ? lines_[line_].begin : text_.size(), out_);
    return true;
  }

  // ---- Paragraphs ----

  void end_paragraph() {
    if (paragraph_.empty()) return;
    std::vector<MarkdownBreak> breaks;
    const Line& first = lines_[paragraph_.front().line];
    const Line& last = lines_[paragraph_.back().line];
    for (size_t i = 1; i < paragraph_.size(); ++i) {
      const size_t before = lines_[paragraph_[i - 1].line].end;
      size_t begin = before;
      while (begin > paragraph_[i - 1].begin && is_blank_char(text_[begin - 1])) --begin;
      bool is_hard = before - begin >= 2;
      if (begin > paragraph_[i - 1].begin && text_[begin - 1] == '\\' && begin == before) {
        is_hard = true, --begin;
      }
      breaks.push_back({begin, paragraph_[i].begin, is_hard});
    }
    size_t end = last.end;
    while (end > paragraph_.back().begin && is_blank_char(text_[end - 1])) --end;
    out_.copy(first.begin, paragraph_.front().begin);
    parse_markdown_inline(text_, paragraph_.front().begin, end, breaks, labels_, out_);
    out_.copy(end, last.next);
    paragraph_.clear();
  }

  struct ParagraphLine {
    size_t begin;  // of its text
    size_t line;
  };

  std::string_view text_;
  MarkedTextBuilder out_;
  std::vector<Line> lines_;
  LinkLabels labels_;
  size_t line_ = 0;
  std::vector<ParagraphLine> paragraph_;
  bool in_list_ = false, after_blank_ = true;
  size_t list_indent_ = 0, quotes_ = 0;
};

}  // namespace

MarkedText parse_markdown(std::string_view markdown) { return Parser(markdown).parse(); }

}  // namespace heed
