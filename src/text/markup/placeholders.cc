#include "text/markup/placeholders.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>

#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// A longer "{…}" is prose in braces; this also bounds the time of a text of opening braces.
constexpr size_t kMostNameBytes = 64;
// Endings of domains without "www." or a scheme. Short on purpose: "end.No" is no domain.
constexpr std::array<std::string_view, 10> kDomainEndings{"com", "org", "net", "edu", "gov",
                                                          "io",  "dev", "de",  "eu",  "info"};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_alnum(char c) { return is_digit(c) || is_alpha(c); }
constexpr bool is_name(char c) { return is_alnum(c) || c == '_'; }
constexpr bool is_one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

constexpr char32_t kJoiner = 0x200D, kTextStyle = 0xFE0E, kEmojiStyle = 0xFE0F, kKeycap = 0x20E3;

bool is_regional(char32_t c) { return c >= 0x1F1E6 && c <= 0x1F1FF; }
// Pictographs from the watch on; below are ©, ®, ™ and arrows, which vocabularies have.
bool is_pictograph(char32_t c) {
  return c >= 0x231A && u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_EXTENDED_PICTOGRAPHIC);
}
// What continues an emoji: styles, skin tones, tags of flags.
bool is_emoji_modifier(char32_t c) {
  return c == kTextStyle || c == kEmojiStyle || c == kKeycap || (c >= 0x1F3FB && c <= 0x1F3FF) ||
         (c >= 0xE0020 && c <= 0xE007F);
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<TextSpan> scan() && {
    for (size_t at = 0; at < text_.size();) {
      const size_t end = placeholder_at(at);
      if (end > at) {
        spans_.push_back({static_cast<int64_t>(at), static_cast<int64_t>(end)});
        at = end;
      } else {
        at = std::max(at + 1, skip_to_);
      }
    }
    return std::move(spans_);
  }

 private:
  char peek(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  bool has(size_t at, std::string_view what) const {
    return text_.substr(std::min(at, text_.size())).starts_with(what);
  }
  // Whether a word character precedes.
  bool is_inside_word(size_t at) const {
    if (at == 0) return false;
    const char32_t c = decode_utf8_before(text_, at).value;
    return c == '_' || is_letter(c) || is_number(c);
  }

  // Each returns the end of the placeholder at `at`, or `at` if there is none.
  size_t placeholder_at(size_t at) {
    const char c = text_[at];
    size_t end = at;
    switch (c) {
      case '{':
        return braces(at);
      case '$':
        return peek(at + 1) == '{' ? after(at, braces(at + 1), at + 1) : at;
      case '%':
        return percent(at);
      case '<':
        return numbered_tag(at);
      case '@':
        return mention(at);
      case '#':
        if (peek(at + 1) == '{') return after(at, braces(at + 1), at + 1);
        if (end = keycap(at); end > at) return end;
        return hashtag(at);
      case '*':
        return keycap(at);
      default:
        break;
    }
    if (!is_ascii(c)) return emoji(at);
    if (is_digit(c) && (end = keycap(at)) > at) return end;
    return is_alnum(c) && at >= skip_to_ ? address(at) : at;
  }

  static size_t after(size_t at, size_t end, size_t begin) { return end > begin ? end : at; }

  size_t braces(size_t at) const {
    size_t depth = 1;
    while (depth < 3 && peek(at + depth) == '{') ++depth;
    const size_t begin = at + depth, most = std::min(text_.size(), begin + kMostNameBytes + 1);
    for (size_t i = begin; i < most; ++i) {
      if (is_one_of(text_[i], "{\n\r")) return at;
      if (text_[i] == '}') return has(i, std::string_view("}}}").substr(0, depth)) ? i + depth : at;
    }
    return at;
  }

  size_t percent(size_t at) const {
    size_t i = at + 1;
    if (peek(i) == '%') return i + 1;
    if (peek(i) == '{') return after(at, braces(i), i);
    if (peek(i) == '(') {
      const size_t most = std::min(text_.size(), i + kMostNameBytes);
      while (i < most && text_[i] != ')') ++i;
      if (i >= most) return at;
      ++i;
    }
    const size_t digits = i;
    while (is_digit(peek(i)) && i - digits < 3) ++i;
    const bool has_number = i > digits;
    if (has_number && peek(i) == '$') ++i;
    const size_t flags = i;
    while (i - flags < 8 && is_one_of(peek(i), "-+#0'*123456789.")) ++i;
    while (i - flags < 12 && is_one_of(peek(i), "hlLqjzt")) ++i;
    const bool after_digit = at > 0 && is_digit(text_[at - 1]);
    if (is_one_of(peek(i), "diouxXeEfFgGaAcspn@") && i < text_.size()) {
      // "100%sure" is prose.
      return after_digit && is_alnum(peek(i + 1)) ? at : i + 1;
    }
    // Qt's %1.
    const bool is_qt = has_number && text_[digits] != '0' && flags - digits <= 2 && !after_digit &&
                       digits == at + 1 && !is_name(peek(flags));
    return is_qt ? flags : at;
  }

  size_t numbered_tag(size_t at) const {
    size_t i = at + 1;
    if (peek(i) == '/') ++i;
    const size_t name = i;
    while (i - name < kMostNameBytes && (is_name(peek(i)) || peek(i) == '-')) ++i;
    if (i == name || !is_digit(text_[i - 1])) return at;
    if (peek(i) == '/') ++i;
    return peek(i) == '>' ? i + 1 : at;
  }

  // Names of [A-Za-z0-9_], with '.' and '-' between.
  size_t name_end(size_t at) const {
    size_t i = at;
    while (is_name(peek(i)) ||
           ((peek(i) == '.' || peek(i) == '-') && i > at && is_name(peek(i + 1))))
      ++i;
    return i;
  }

  size_t mention(size_t at) const {
    if (is_inside_word(at) || !(is_alpha(peek(at + 1)) || peek(at + 1) == '_')) return at;
    const size_t end = name_end(at + 1);
    return peek(end) == '@' && is_alnum(peek(end + 1)) ? name_end(end + 1) : end;
  }

  size_t hashtag(size_t at) const {
    if (is_inside_word(at) || at + 1 >= text_.size()) return at;
    if (!is_letter(decode_utf8(text_, at + 1).value)) return at;
    size_t i = at + 1;
    while (i < text_.size()) {
      const CodePoint c = decode_utf8(text_, i);
      if (c.value != '_' && !is_letter(c.value) && !is_number(c.value) && !is_mark(c.value)) break;
      i += c.bytes;
    }
    return i;
  }

  size_t keycap(size_t at) const {
    if (has(at + 1, "\uFE0F\u20E3")) return at + 7;
    return has(at + 1, "\u20E3") ? at + 4 : at;
  }

  size_t emoji(size_t at) const {
    size_t i = at;
    while (i < text_.size()) {
      const CodePoint c = decode_utf8(text_, i);
      if (is_regional(c.value)) {
        i += c.bytes;
        if (i < text_.size()) {
          const CodePoint second = decode_utf8(text_, i);
          if (is_regional(second.value)) i += second.bytes;
        }
      } else if (is_pictograph(c.value)) {
        i += c.bytes;
      } else {
        return at;
      }
      while (i < text_.size()) {
        const CodePoint next = decode_utf8(text_, i);
        if (!is_emoji_modifier(next.value)) break;
        i += next.bytes;
      }
      // A joiner continues with another pictograph.
      if (i >= text_.size() || decode_utf8(text_, i).value != kJoiner) return i;
      const size_t joined = i + 3;
      if (joined >= text_.size() || !is_pictograph(decode_utf8(text_, joined).value)) return i;
      i = joined;
    }
    return i;
  }

  // A URL, an e-mail address or a domain, at the beginning of a run of address characters.
  size_t address(size_t at) {
    size_t end = at;
    while (is_name(peek(end)) || is_one_of(peek(end), ".+-")) ++end;
    // Nothing else begins in this run, except that its last digit may be a keycap.
    skip_to_ = !is_ascii(peek(end)) && is_digit(text_[end - 1]) ? end - 1 : end;
    const std::string_view run = text_.substr(at, end - at);
    if (is_alpha(run[0]) && has(end, "://")) return after(at, url_end(end + 3), end + 3);
    if (run == "mailto" && peek(end) == ':') {
      const size_t begin = end + 1;
      return after(at, url_end(begin), begin);
    }
    if (peek(end) == '@' && !run.ends_with('.') && is_alnum(peek(end + 1))) {
      const size_t domain = name_end(end + 1);
      const std::string_view host = text_.substr(end + 1, domain - end - 1);
      if (host.find('.') != std::string_view::npos) return skip_to_ = domain;
    }
    const size_t name = name_end(at);
    const std::string_view host = text_.substr(at, name - at);
    const bool is_www = host.size() > 4 && (host.starts_with("www.") || host.starts_with("WWW."));
    if (!is_www && !is_domain(host)) return at;
    // A path, a port or a query.
    if (is_one_of(peek(name), "/:?#") && name < text_.size()) {
      const size_t longer = url_end(name);
      if (peek(name) != ':' || is_digit(peek(name + 1))) return skip_to_ = std::max(longer, name);
    }
    return skip_to_ = name;
  }

  static bool is_domain(std::string_view host) {
    const size_t dot = host.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return false;
    return std::ranges::find(kDomainEndings, host.substr(dot + 1)) != kDomainEndings.end();
  }

  // The end of a URL whose rest begins at `at`; punctuation at its end belongs to the sentence.
  size_t url_end(size_t at) const {
    size_t end = at;
    std::array<int64_t, 3> open{};  // brackets ( [ { that are open
    constexpr std::string_view kOpen = "([{", kClose = ")]}";
    while (end < text_.size()) {
      const CodePoint c = decode_utf8(text_, end);
      const bool is_plain = c.value > ' ' && c.value < 0x7F && !is_one_of(text_[end], "<>\"`");
      // Letters of paths; Chinese and Japanese text has no space after a URL.
      const bool is_path_letter = c.value >= 0x80 && c.value < 0x2E80 && is_letter(c.value);
      if (!is_plain && !is_path_letter) break;
      end += c.bytes;
    }
    for (const char c : text_.substr(at, end - at)) {
      if (const size_t i = kOpen.find(c); i < kOpen.size()) ++open[i];
      if (const size_t i = kClose.find(c); i < kClose.size()) --open[i];
    }
    while (end > at) {
      const char c = text_[end - 1];
      const size_t close = kClose.find(c);
      if (close < kClose.size() && open[close] < 0) {
        ++open[close];
      } else if (!is_one_of(c, ".,;:!?'*_~")) {
        break;
      }
      --end;
    }
    return end;
  }

  std::string_view text_;
  std::vector<TextSpan> spans_;
  size_t skip_to_ = 0;  // no address begins before this byte
};

}  // namespace

std::vector<TextSpan> find_placeholders(std::string_view text) { return Scanner(text).scan(); }

}  // namespace heed
