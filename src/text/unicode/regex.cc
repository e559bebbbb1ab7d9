#include "text/unicode/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "heed/error.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// Members of a class. White_Space: PCRE2's \s also has U+180E. \w: PCRE2's lacks marks.
constexpr std::string_view kSpaces =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";
constexpr std::string_view kWordCharacters = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr std::string_view kHexDigits = "0-9a-fA-F";
// Oniguruma's \w uses a Latin-1 table that has ¹, ², ³, ¼, ½ and ¾; its [\w] uses Unicode's.
constexpr std::string_view kLatinNumbers = "\\x{b9}\\x{b2}\\x{b3}\\x{bc}-\\x{be}";

// [:names:] of classes where Oniguruma follows Unicode's properties and PCRE2 does not.
constexpr std::pair<std::string_view, std::string_view> kNamedClasses[] = {
    {"alpha", "\\p{Alphabetic}"},
    {"^alpha", "\\P{Alphabetic}"},
    {"alnum", "\\p{Alphabetic}\\p{Nd}"},
    {"lower", "\\p{Lowercase}"},
    {"^lower", "\\P{Lowercase}"},
    {"punct", "\\p{P}\\p{S}"},
    {"space", kSpaces},
    {"upper", "\\p{Uppercase}"},
    {"^upper", "\\P{Uppercase}"},
    {"word", kWordCharacters},
};

[[noreturn]] void throw_unsupported(std::string_view pattern, const std::string& why) {
  throw Error(ErrorCode::unsupported,
              "the pattern '" + std::string(pattern) + "' is not supported: " + why,
              "Heed supports the regular expressions that PCRE2 and Oniguruma have in common");
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string translate() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '{' && repeated_count()) continue;
      if (c == ')' && !groups_.empty()) {
        atom_ = groups_.back();
        groups_.pop_back();
      } else if (c != '+' && c != '*' && c != '?' && c != '{') {
        atom_ = out_.size();
        if (c == '(') groups_.push_back(atom_);
      }
      if (c == '\\') {
        outside_escape();
      } else if (c == '[') {
        outside_class();
      } else {
        out_.push_back(pattern_[at_++]);
      }
    }
    return std::move(out_);
  }

 private:
  static std::string_view members_of(char letter) {
    switch (letter) {
      case 's':
      case 'S':
        return kSpaces;
      case 'w':
      case 'W':
        return kWordCharacters;
      case 'h':
      case 'H':
        return kHexDigits;
      default:
        return {};
    }
  }
  static bool is_upper(char letter) { return letter >= 'A' && letter <= 'Z'; }

  void copy_escape() {
    size_t end = std::min(at_ + 2, pattern_.size());
    // \p{Lu}, \x{1F600}, \k{name}: the braces are part of the escape.
    if (end < pattern_.size() && pattern_[end] == '{' && at_ + 1 < pattern_.size() &&
        std::string_view("pPxkgo").find(pattern_[at_ + 1]) != std::string_view::npos) {
      const size_t close = pattern_.find('}', end);
      if (close != std::string_view::npos) end = close + 1;
    }
    out_.append(pattern_.substr(at_, end - at_));
    at_ = end;
  }

  // x{1,3}+ is (x{1,3})+ in Ruby, but a possessive quantifier in PCRE2.
  bool repeated_count() {
    const size_t close = pattern_.find('}', at_);
    if (close == std::string_view::npos || close + 1 >= pattern_.size()) return false;
    const std::string_view count = pattern_.substr(at_ + 1, close - at_ - 1);
    const bool is_count = !count.empty() && count.find_first_not_of("0123456789,") == count.npos;
    if (!is_count || pattern_[close + 1] != '+') return false;
    out_.insert(atom_, "(?:");
    out_.append("{").append(count).append("})+");
    at_ = close + 2;
    return true;
  }

  void outside_escape() {
    const char letter = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    const std::string_view members = members_of(letter);
    if (members.empty()) return copy_escape();
    out_.append(is_upper(letter) ? "[^" : "[").append(members);
    if (letter == 'w' || letter == 'W') out_.append(kLatinNumbers);
    out_.push_back(']');
    at_ += 2;
  }

  void outside_class() {
    out_.push_back('[');
    ++at_;
    if (at_ < pattern_.size() && pattern_[at_] == '^') {
      out_.push_back('^');
      ++at_;
    }
    members();
    out_.push_back(']');
  }

  // Up to and including the closing bracket. A nested class adds its members.
  void members() {
    bool first = true;
    for (int depth = 1; depth > 0; first = false) {
      if (at_ >= pattern_.size()) throw_unsupported(pattern_, "a character class must be closed");
      const char c = pattern_[at_];
      if (c == '\\') {
        inside_escape();
      } else if (c == '[' && pattern_.substr(at_, 2) == "[:") {
        const size_t end = pattern_.find(":]", at_);
        if (end == std::string_view::npos)
          throw_unsupported(pattern_, "a class name must be closed");
        const auto* const named =
            std::ranges::find(kNamedClasses, pattern_.substr(at_ + 2, end - at_ - 2),
                              &std::pair<std::string_view, std::string_view>::first);
        out_.append(named != std::end(kNamedClasses) ? named->second
                                                     : pattern_.substr(at_, end + 2 - at_));
        at_ = end + 2;
      } else if (c == '[') {
        if (pattern_.substr(at_, 2) == "[^")
          throw_unsupported(pattern_, "a nested class must not be negated");
        ++depth;
        ++at_;
      } else if (c == ']' && !first) {
        --depth;
        ++at_;
      } else if (pattern_.substr(at_, 2) == "&&") {
        throw_unsupported(pattern_, "class intersections are not implemented");
      } else {
        // A leading bracket is literal.
        if (c == ']') out_.push_back('\\');
        out_.push_back(c);
        ++at_;
      }
    }
  }

  void inside_escape() {
    const char letter = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    const std::string_view members = members_of(letter);
    // The complement of a set cannot be written inside a class; PCRE2's is nearly the same.
    if (members.empty() || is_upper(letter)) return copy_escape();
    out_.append(members);
    at_ += 2;
  }

  std::string_view pattern_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = 0;             // start in out_ of what a quantifier would repeat
  std::vector<size_t> groups_;  // starts in out_ of the open groups
};

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// Beyond this a match takes seconds: catastrophic backtracking.
constexpr uint32_t kMatchLimit = 10'000'000;

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;

  ~Code() {
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }
};

struct Regex::Search::State {
  const Regex& regex;
  std::string_view text;
  pcre2_match_data* data = nullptr;
  size_t at = 0;
  bool done = false;
};

Regex::Regex(const std::string& pattern) : pattern_(pattern), code_(std::make_unique<Code>()) {
  const std::string translated = translate_pattern(pattern);
  int error = 0;
  PCRE2_SIZE error_at = 0;
  // In Ruby ^ and $ match at every line.
  constexpr uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
  code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                              kOptions, &error, &error_at, nullptr);
  if (code_->code == nullptr) throw_unsupported(pattern, pcre2_message(error));
  // Without a JIT compiler for this machine, PCRE2 interprets.
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);
  code_->context = pcre2_match_context_create(nullptr);
  if (code_->context == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(code_->context, kMatchLimit);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

Regex::Search::Search(const Regex& regex, std::string_view text)
    : state_(std::make_unique<State>(State{regex, text})) {
  state_->data = pcre2_match_data_create_from_pattern(regex.code_->code, nullptr);
  if (state_->data == nullptr) throw std::bad_alloc();
}

Regex::Search::~Search() { pcre2_match_data_free(state_->data); }

std::optional<RegexMatch> Regex::Search::next() {
  State& s = *state_;
  if (s.done || s.at > s.text.size()) return std::nullopt;
  const Code& code = *s.regex.code_;
  const auto* text = reinterpret_cast<PCRE2_SPTR>(s.text.data());
  int result = pcre2_match(code.code, text, s.text.size(), s.at, 0, s.data, code.context);
  // JIT code has a small stack; the interpreter uses the heap.
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
    result = pcre2_match(code.code, text, s.text.size(), s.at, PCRE2_NO_JIT, s.data, code.context);
  }
  if (result < 0) {
    s.done = true;
    if (result != PCRE2_ERROR_NOMATCH) throw_unsupported(s.regex.pattern_, pcre2_message(result));
    return std::nullopt;
  }
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(s.data);
  const RegexMatch match{offsets[0], offsets[1]};
  // \K in a lookahead can place the begin after the end.
  if (match.begin > match.end || match.end < s.at)
    throw_unsupported(s.regex.pattern_, "a match must not end before it begins");
  s.at = match.end;
  if (match.begin == match.end) {
    s.at += s.at < s.text.size() ? decode_utf8(s.text, s.at).bytes : 1;
  }
  return match;
}

std::string translate_pattern(std::string_view pattern) { return Translator(pattern).translate(); }

std::string escape_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool plain = !is_ascii(c) || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                       (c >= 'A' && c <= 'Z') || c == '\n' || c == '\r' || c == '\t' || c == '\0';
    if (!plain) pattern.push_back('\\');
    pattern.push_back(c);
  }
  return pattern;
}

}  // namespace heed
