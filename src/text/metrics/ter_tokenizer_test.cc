#include "text/metrics/ter_tokenizer.h"

#include <gtest/gtest.h>

#include "text/metrics/metric_text.h"

namespace heed {
namespace {

// The words, with one space between them.
std::string words(const std::string& text, const TerOptions& options) {
  const std::string tokenized = tokenize_for_ter(text, options);
  std::string result;
  for (const std::string_view word : split_words(tokenized)) {
    if (!result.empty()) result.push_back(' ');
    result.append(word);
  }
  return result;
}

TEST(TerTokenizer, OnlyLowersByDefault) {
  EXPECT_EQ(words("A b C d.", {}), "a b c d.");
  EXPECT_EQ(words("A b C d. ", {.case_sensitive = true}), "A b C d.");
  EXPECT_EQ(words("", {.normalized = true, .no_punct = true, .asian_support = true}), "");
}

TEST(TerTokenizer, DropsPunctuation) {
  EXPECT_EQ(words("A ; B ) C : D.", {.no_punct = true}), "a b c d");
  EXPECT_EQ(words("好。（好）", {.no_punct = true}), "好。（好）");
  EXPECT_EQ(words("好。（好）", {.no_punct = true, .asian_support = true}), "好好");
}

TEST(TerTokenizer, Normalizes) {
  EXPECT_EQ(words("a b (c) d.", {.normalized = true}), "a b ( c ) d .");
  EXPECT_EQ(words("Jim's car.", {.normalized = true}), "jim 's car .");
  EXPECT_EQ(words("it was Jim's", {.normalized = true}), "it was jim 's");
  EXPECT_EQ(words("4.2", {.normalized = true}), "4.2");
  EXPECT_EQ(words("&quot;1990-95&quot;", {.normalized = true}), "\" 1990 - 95 \"");
}

TEST(TerTokenizer, SplitsIdeographsButNotKana) {
  const TerOptions asian = {.normalized = true, .asian_support = true};
  EXPECT_EQ(words("美众院公布对特", asian), "美 众 院 公 布 对 特");
  EXPECT_EQ(words("りの拳銃を持", asian), "りの 拳 銃 を 持");
  EXPECT_EQ(words("好，好。", asian), "好 ， 好 。");
}

}  // namespace
}  // namespace heed
