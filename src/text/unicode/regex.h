// Regular expressions of tokenizer.json: Oniguruma's (Ruby's) syntax, run by PCRE2.
//
// The two languages are nearly the same. Differences that occur in tokenizers are translated: nested
// classes, and the meaning of \s, \w and \h.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace heed {

struct RegexMatch {
  size_t begin = 0, end = 0;
};

class Regex {
 public:
  // Throws unsupported when PCRE2 cannot compile it.
  explicit Regex(const std::string& pattern);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Calls found(begin, end) for each match from left to right. Bytes that are not UTF-8 never
  // match. Thread-safe. Throws unsupported when a match exceeds PCRE2's step limit.
  template <class Found>
  void each_match(std::string_view text, const Found& found) const {
    Search search(*this, text);
    while (const std::optional<RegexMatch> match = search.next()) found(match->begin, match->end);
  }

 private:
  struct Code;
  class Search {
   public:
    Search(const Regex& regex, std::string_view text);
    ~Search();
    std::optional<RegexMatch> next();

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

  std::string pattern_;
  std::unique_ptr<Code> code_;
};

// The pattern in PCRE2's syntax; for tests.
std::string translate_pattern(std::string_view pattern);
// A pattern that matches exactly this text.
std::string escape_pattern(std::string_view text);

}  // namespace heed
