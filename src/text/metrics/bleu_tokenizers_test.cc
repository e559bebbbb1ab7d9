#include "text/metrics/bleu_tokenizers.h"

#include <gtest/gtest.h>

#include "heed/error.h"
#include "text/metrics/metric_text.h"

namespace heed {
namespace {

// The tokens, with one space between them.
std::string tokens(const std::string& name, const std::string& text) {
  const std::string tokenized = find_bleu_tokenizer(name)(text);
  std::string result;
  for (const std::string_view word : split_words(tokenized)) {
    if (!result.empty()) result.push_back(' ');
    result.append(word);
  }
  return result;
}

TEST(BleuTokenizers, Mteval13a) {
  EXPECT_EQ(tokens("13a", "Hello, world!"), "Hello , world !");
  EXPECT_EQ(tokens("13a", "1,000.50 and 3.x and .5"), "1,000.50 and 3 . x and . 5");
  EXPECT_EQ(tokens("13a", "in 1990-1995, well-known"), "in 1990 - 1995 , well-known");
  EXPECT_EQ(tokens("13a", "It's (so) [very] {odd} a/b"), "It's ( so ) [ very ] { odd } a / b");
  EXPECT_EQ(tokens("13a", "&quot;x&quot; &amp;lt; &lt;skipped&gt;"), "\" x \" < < skipped >");
  EXPECT_EQ(tokens("13a", "<skipped>a <b>"), "a < b >");
  EXPECT_EQ(tokens("13a", "wait..."), "wait . . .");
  EXPECT_EQ(tokens("13a", "ends in 7."), "ends in 7 .");
  EXPECT_EQ(tokens("13a", "“élan”, ça."), "“élan” , ça .");
  EXPECT_EQ(tokens("13a", "a-\nb\nc"), "ab c");
  EXPECT_EQ(tokens("13a", ""), "");
}

TEST(BleuTokenizers, InternationalByUnicodeCategory) {
  EXPECT_EQ(tokens("intl", "“élan”, ça. 5€"), "“ élan ” , ça . 5 €");
  EXPECT_EQ(tokens("intl", "1,000.50"), "1,000.50");
  EXPECT_EQ(tokens("intl", "in 1990."), "in 1990.");  // as in mteval-v14
  EXPECT_EQ(tokens("intl", "a+b=c"), "a + b = c");
  EXPECT_EQ(tokens("intl", "½. Ⅷ.x"), "½ . Ⅷ . x");
  EXPECT_EQ(tokens("intl", "&quot;"), "& quot ;");  // escapes are not undone
}

TEST(BleuTokenizers, Chinese) {
  EXPECT_EQ(tokens("zh", "我爱NLP。真的！"), "我 爱 NLP 。 真 的 ！");
  EXPECT_EQ(tokens("zh", "it’s 1,5"), "it ’ s 1,5");
  EXPECT_EQ(tokens("zh", "ends in 7."), "ends in 7.");  // 13a adds a space at the end, zh does not
  EXPECT_EQ(tokens("zh", "a𠀀b"), "a𠀀b");
}

TEST(BleuTokenizers, CharactersAndNone) {
  EXPECT_EQ(tokens("char", "né 我"), "n é 我");
  EXPECT_EQ(tokens("none", "don't, stop."), "don't, stop.");
}

TEST(BleuTokenizers, SuggestsASimilarName) {
  try {
    find_bleu_tokenizer("13");
    FAIL() << "13 must not be a tokenizer";
  } catch (const Error& e) {
    EXPECT_EQ(e.hint(), "did you mean '13a'?");
  }
}

}  // namespace
}  // namespace heed
