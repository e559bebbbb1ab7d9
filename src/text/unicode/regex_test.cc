#include "text/unicode/regex.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/files/file_testing.h"

namespace heed {
namespace {

std::vector<std::string> matches(const std::string& pattern, std::string_view text) {
  std::vector<std::string> found;
  Regex(pattern).each_match(
      text, [&](size_t begin, size_t end) { found.emplace_back(text.substr(begin, end - begin)); });
  return found;
}

using Texts = std::vector<std::string>;

TEST(Regex, FindsEveryMatch) {
  EXPECT_EQ(matches(R"(\p{L}+|\d)", "ab1é2"), (Texts{"ab", "1", "é", "2"}));
  EXPECT_EQ(matches(R"(x*)", "axb"), (Texts{"", "x", "", ""}));
  EXPECT_EQ(matches(R"(^\w)", "a\nb"), (Texts{"a", "b"}));
  EXPECT_EQ(matches("(?i:'s)", "'S 's"), (Texts{"'S", "'s"}));
  EXPECT_EQ(matches("a", ""), (Texts{}));
}

TEST(Regex, ReadsOnigurumasClasses) {
  // BLOOM's pattern: a nested class.
  EXPECT_EQ(matches(R"( ?[^(\s|[.,!?])]+)", "how (are) you, all?"),
            (Texts{"how", "are", " you", " all"}));
  EXPECT_EQ(matches(R"([]a]+)", "a]b"), (Texts{"a]"}));
  EXPECT_EQ(matches(R"(\w+)", "e\u0301 x_1"), (Texts{"e\u0301", "x_1"}));
  EXPECT_EQ(matches(R"(\s)", "\u180E\u00A0"), (Texts{"\u00A0"}));
  EXPECT_EQ(matches(R"(\p{N}{1,3}+|(ab){2}+)", "12345 ababab ababababx"),
            (Texts{"12345", "abab", "abababab"}));
  EXPECT_EQ(matches(R"(\p{N}{1,3})", "12345"), (Texts{"123", "45"}));
  EXPECT_EQ(matches(R"([[:alpha:]\h]+)", "g9!"), (Texts{"g9"}));
  // As the tokenizers library splits them.
  EXPECT_EQ(matches(R"(\w+)", "a½²"), (Texts{"a½²"}));
  EXPECT_EQ(matches(R"([\w]+)", "a½²"), (Texts{"a"}));
  EXPECT_EQ(matches(R"([[:punct:]]+)", "a!€©+b"), (Texts{"!€©+"}));
  EXPECT_EQ(matches(R"([[:alpha:]]+)", "a\u0345½"), (Texts{"a\u0345"}));
  EXPECT_EQ(matches(R"([[:alnum:]]+)", "a1½"), (Texts{"a1"}));
  EXPECT_EQ(matches(R"([[:upper:]]+)", "aⅧA"), (Texts{"ⅧA"}));
  EXPECT_EQ(matches(R"([[:space:]]+)", "\u180E\u00A0"), (Texts{"\u00A0"}));
  EXPECT_EQ(matches(R"([[:^alpha:]]+)", "a\u0345½"), (Texts{"½"}));
}

TEST(Regex, SkipsBytesThatAreNotUtf8) {
  EXPECT_EQ(matches(R"([^\s]+)",
                    "a\xFF"
                    "b\xC3 c"),
            (Texts{"a", "b", "c"}));
}

TEST(Regex, RejectsUnsupportedPatterns) {
  expect_error(ErrorCode::unsupported, "'a(' is not supported", [] { Regex("a("); });
  expect_error(ErrorCode::unsupported, "a character class must be closed", [] { Regex("[a"); });
  expect_error(ErrorCode::unsupported, "intersection", [] { Regex("[a&&b]"); });
  expect_error(ErrorCode::unsupported, "must not be negated", [] { Regex("[a[^b]]"); });
}

TEST(Regex, LimitsBacktracking) {
  const std::string text(60, 'a');
  expect_error(ErrorCode::unsupported, "limit", [&] { matches(R"((a|aa)+\d)", text); });
}

TEST(Regex, EscapesTexts) {
  const std::string text = "a.b*[c]\\{d} é\n-";
  EXPECT_EQ(matches(escape_pattern(text), "xx" + text + "yy"), (Texts{text}));
}

}  // namespace
}  // namespace heed
