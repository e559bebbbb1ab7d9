#include "text/markup/html.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace heed {
namespace {

constexpr auto kNone = std::string_view::npos;

bool is_html_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v'); }
bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }
std::string lowered(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

template <size_t kSize>
bool is_in(const std::array<std::string_view, kSize>& sorted, std::string_view name) {
  return std::ranges::binary_search(sorted, name);
}

// All sorted.
constexpr std::array<std::string_view, 63> kBlocks{
    "address",  "article", "aside",   "base",     "blockquote", "body",     "br",     "button",
    "caption",  "center",  "col",     "colgroup", "dd",         "details",  "dialog", "dir",
    "div",      "dl",      "dt",      "fieldset", "figcaption", "figure",   "footer", "form",
    "frameset", "h1",      "h2",      "h3",       "h4",         "h5",       "h6",     "head",
    "header",   "hgroup",  "hr",      "html",     "legend",     "li",       "link",   "main",
    "menu",     "meta",    "nav",     "noscript", "ol",         "optgroup", "option", "p",
    "pre",      "search",  "section", "select",   "summary",    "table",    "tbody",  "td",
    "template", "tfoot",   "th",      "thead",    "title",      "tr",       "ul"};
constexpr std::array<std::string_view, 15> kVoid{"area",  "base",  "basefont", "br",    "col",
                                                 "embed", "frame", "hr",       "img",   "input",
                                                 "link",  "meta",  "source",   "track", "wbr"};
// Their content is no markup.
constexpr std::array<std::string_view, 8> kRaw{"iframe", "noembed", "noframes", "plaintext",
                                               "script", "style",   "textarea", "xmp"};
// Their content is copied, and is a word of the sentence.
constexpr std::array<std::string_view, 7> kUntouched{"code", "kbd", "math", "pre",
                                                     "samp", "tt",  "var"};
// Their content is copied, and is no word.
constexpr std::array<std::string_view, 5> kPictures{"audio", "canvas", "object", "svg", "video"};

static_assert(std::ranges::is_sorted(kBlocks) && std::ranges::is_sorted(kVoid) &&
              std::ranges::is_sorted(kRaw) && std::ranges::is_sorted(kUntouched) &&
              std::ranges::is_sorted(kPictures));

struct Attribute {
  std::string_view name, value;
};

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && !is_html_space(text[end])) ++end;
    if (text.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

bool is_untouched(const Attribute& attribute) {
  const std::string name = lowered(attribute.name.substr(0, 10));
  if (name == "translate") return lowered(attribute.value.substr(0, 3)) == "no";
  return name == "class" && has_word(attribute.value, "notranslate");
}

// The rest of a start or end tag, by the states of the HTML standard's tokenizer: a quote is one only
// after '='. Returns whether it ends.
bool read_attributes(std::string_view html, size_t at, HtmlTag& tag) {
  const size_t size = html.size();
  const auto skip_space = [&] {
    while (at < size && is_html_space(html[at])) ++at;
  };
  while (true) {
    skip_space();
    if (at >= size) return false;
    if (html[at] == '>') {
      tag.end = at + 1;
      return true;
    }
    if (html[at] == '/') {
      ++at;
      tag.is_empty = at < size && html[at] == '>';
      continue;
    }
    Attribute attribute;
    const size_t name = at;
    ++at;  // a '=' here is part of the name
    while (at < size && !is_html_space(html[at]) && html[at] != '=' && html[at] != '>' &&
           html[at] != '/') {
      ++at;
    }
    attribute.name = html.substr(name, at - name);
    skip_space();
    if (at < size && html[at] == '=') {
      ++at;
      skip_space();
      if (at >= size) return false;
      if (const char quote = html[at]; quote == '"' || quote == '\'') {
        const size_t end = html.find(quote, at + 1);
        if (end == kNone) return false;
        attribute.value = html.substr(at + 1, end - at - 1);
        at = end + 1;
      } else {
        const size_t begin = at;
        while (at < size && !is_html_space(html[at]) && html[at] != '>') ++at;
        attribute.value = html.substr(begin, at - begin);
      }
    }
    tag.is_untouched = tag.is_untouched || is_untouched(attribute);
  }
}

// The byte after `what`, from `at` on.
std::optional<HtmlTag> until(std::string_view html, size_t at, std::string_view what) {
  const size_t found = html.find(what, at);
  if (found == kNone) return std::nullopt;
  return HtmlTag{.kind = HtmlTag::Kind::other, .name = {}, .end = found + what.size()};
}

class Parser {
 public:
  Parser(std::string_view html, MarkedTextBuilder& builder) : html_(html), out_(builder) {}

  void parse(size_t begin) {
    text_ = at_ = begin;
    while (at_ < html_.size()) {
      const char c = html_[at_];
      if (c == '<' && failed_bytes_ <= kMostFailures * (html_.size() - begin)) {
        tag();
      } else if (c == '&') {
        entity();
      } else if (is_html_space(c)) {
        space();
      } else {
        ++at_;
      }
    }
    flush();
    if (is_skipping()) out_.copy(skip_begin_, html_.size());
    out_.end_block(html_.size());
  }

 private:
  // A tag that does not end is text, and the search for its end was in vain. With an attribute that
  // has no second quote this may happen at many tags: then the rest has none.
  static constexpr size_t kMostFailures = 4;

  bool is_skipping() const { return !skip_name_.empty(); }

  // The text before the current position.
  void flush() {
    if (is_skipping()) {
      skip_text_ += html_.substr(text_, at_ - text_);
    } else {
      out_.text(text_, at_);
    }
    text_ = at_;
  }

  void tag() {
    const size_t begin = at_;
    std::optional<HtmlTag> read = read_html_tag(html_, at_);
    if (!read) {
      failed_bytes_ += may_be_html_tag(html_, at_) ? html_.size() - at_ : 0;
      ++at_;
      return;
    }
    flush();
    const bool is_raw = read->kind == HtmlTag::Kind::start && is_in(kRaw, read->name);
    at_ = is_raw && !read->is_empty ? raw_end(*read) : read->end;
    text_ = at_;
    if (is_skipping()) {
      skip(*read);
    } else if (is_raw || read->kind == HtmlTag::Kind::other) {
      out_.mark(Mark::Kind::empty, {}, begin, at_);
    } else if (read->kind == HtmlTag::Kind::start) {
      start_tag(*read, begin);
    } else {
      end_tag(*read, begin);
    }
  }

  // The end of an element whose content is no markup.
  size_t raw_end(const HtmlTag& tag) const {
    for (size_t at = tag.end; (at = html_.find("</", at)) != kNone; at += 2) {
      const std::string_view rest = html_.substr(at + 2);
      if (lowered(rest.substr(0, tag.name.size())) != tag.name) continue;
      const size_t after = tag.name.size();
      if (rest.size() > after && !is_html_space(rest[after]) && rest[after] != '>' &&
          rest[after] != '/') {
        continue;
      }
      const size_t end = rest.find('>', after);
      return end == kNone ? html_.size() : at + 2 + end + 1;
    }
    return html_.size();
  }

  void start_tag(const HtmlTag& tag, size_t begin) {
    const bool is_block = is_html_block(tag.name), is_picture = is_in(kPictures, tag.name);
    const bool is_void = tag.is_empty || is_in(kVoid, tag.name);
    if (!is_void && (tag.is_untouched || is_picture || is_in(kUntouched, tag.name))) {
      skip_name_ = tag.name, skip_depth_ = 1, skip_begin_ = begin, skip_text_.clear();
      skip_kind_ = is_block ? Skip::block : is_picture ? Skip::picture : Skip::word;
      if (is_block) out_.end_block(begin);
    } else if (is_block) {
      out_.copy(begin, tag.end);
      if (!is_void) ++open_blocks_[tag.name], ++open_count_;
    } else {
      out_.mark(is_void ? Mark::Kind::empty : Mark::Kind::open, tag.name, begin, tag.end);
    }
  }

  void end_tag(const HtmlTag& tag, size_t begin) {
    if (!is_html_block(tag.name)) {
      out_.mark(Mark::Kind::close, tag.name, begin, tag.end);
      return;
    }
    out_.copy(begin, tag.end);
    if (int64_t& open = open_blocks_[tag.name]; open > 0) --open, --open_count_;
  }

  // Inside an element that is copied.
  void skip(const HtmlTag& tag) {
    if (tag.name != skip_name_) return;
    if (tag.kind == HtmlTag::Kind::start && !tag.is_empty) ++skip_depth_;
    if (tag.kind != HtmlTag::Kind::end || --skip_depth_ > 0) return;
    skip_name_.clear();
    if (skip_kind_ == Skip::block) {
      out_.copy(skip_begin_, at_);
    } else {
      out_.fixed(skip_kind_ == Skip::word ? std::string_view(skip_text_) : "", skip_begin_, at_);
    }
  }

  void entity() {
    const std::optional<HtmlEntity> entity = read_html_entity(html_, at_);
    if (!entity) {
      ++at_;
      return;
    }
    flush();
    const size_t begin = at_;
    text_ = at_ = entity->end;
    const std::string_view raw = html_.substr(begin, at_ - begin);
    const std::string_view plain = entity->characters.empty() ? raw : entity->characters;
    if (is_skipping()) {
      skip_text_ += plain;
    } else if (entity->characters.empty()) {
      out_.fixed(raw, begin, at_);
    } else {
      out_.decoded(plain, begin);
    }
  }

  void space() {
    size_t end = at_;
    bool has_break = false;
    for (; end < html_.size() && is_html_space(html_[end]); ++end) {
      has_break = has_break || html_[end] == '\n' || html_[end] == '\r';
    }
    if (!has_break) {
      at_ = end;
      return;
    }
    flush();
    if (is_skipping()) {
      skip_text_ += ' ';
    } else if (open_count_ > 0) {
      out_.soft_break(at_, end);
    } else {
      out_.copy(at_, end);
    }
    text_ = at_ = end;
  }

  enum class Skip { block, word, picture };

  std::string_view html_;
  MarkedTextBuilder& out_;
  size_t at_ = 0, text_ = 0;  // [text_, at_) is text that was not given to the builder yet
  size_t failed_bytes_ = 0;
  std::unordered_map<std::string, int64_t> open_blocks_;
  int64_t open_count_ = 0;
  // The element that is copied, and how many of its name are open.
  std::string skip_name_, skip_text_;
  int64_t skip_depth_ = 0;
  size_t skip_begin_ = 0;
  Skip skip_kind_ = Skip::block;
};

}  // namespace

bool is_html_block(std::string_view name) { return is_in(kBlocks, name); }

bool may_be_html_tag(std::string_view html, size_t at) {
  const auto peek = [&](size_t i) { return i < html.size() ? html[i] : ' '; };
  const char next = peek(at + 1);
  return is_alpha(next) || next == '!' || next == '?' || (next == '/' && is_alpha(peek(at + 2)));
}

std::optional<HtmlTag> read_html_tag(std::string_view html, size_t at) {
  const std::string_view rest = html.substr(at);
  if (rest.starts_with("<!-->")) return until(html, at, ">");
  if (rest.starts_with("<!--->")) return until(html, at, "->");
  const bool is_comment = rest.starts_with("<!--");
  if (is_comment || rest.starts_with("<![CDATA[")) {
    std::optional<HtmlTag> tag = until(html, at + 4, is_comment ? "-->" : "]]>");
    // Without an end, the rest is a comment.
    return tag ? tag : HtmlTag{.kind = HtmlTag::Kind::other, .name = {}, .end = html.size()};
  }
  if (rest.starts_with("<!") || rest.starts_with("<?")) return until(html, at, ">");
  const bool is_end = rest.starts_with("</");
  const size_t name = at + (is_end ? 2 : 1);
  if (name >= html.size() || !is_alpha(html[name])) return std::nullopt;
  size_t end = name;
  while (end < html.size() && !is_html_space(html[end]) && html[end] != '>' && html[end] != '/') {
    ++end;
  }
  HtmlTag tag{.kind = is_end ? HtmlTag::Kind::end : HtmlTag::Kind::start,
              .name = lowered(html.substr(name, end - name))};
  if (!read_attributes(html, end, tag)) return std::nullopt;
  return tag;
}

void parse_html_part(std::string_view html, size_t begin, size_t end, MarkedTextBuilder& builder) {
  const Markup before = builder.set_markup(Markup::html);
  Parser(html.substr(0, end), builder).parse(begin);
  builder.set_markup(before);
}

MarkedText parse_html(std::string_view html) {
  MarkedTextBuilder builder(html, Markup::html);
  parse_html_part(html, 0, html.size(), builder);
  return std::move(builder).finish();
}

}  // namespace heed
