#include "text/unicode/sentence_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace heed {
namespace {

using testing::ElementsAre;

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> sentences;
  for (const TextSpan span : split_sentences(text)) {
    sentences.emplace_back(
        text.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin)));
  }
  return sentences;
}

TEST(SentenceSplitter, CutsAtTheEndsOfSentences) {
  EXPECT_THAT(split("It rains. Does it? Yes! Good."),
              ElementsAre("It rains.", "Does it?", "Yes!", "Good."));
}

TEST(SentenceSplitter, TrimsWhiteSpace) {
  EXPECT_THAT(split("  One.   Two.\n\n\tThree\n"), ElementsAre("One.", "Two.", "Three"));
}

TEST(SentenceSplitter, AFullStopAfterAnAbbreviationEndsNoSentence) {
  EXPECT_THAT(split("Mr. Smith paid 3.50 dollars. He left."),
              ElementsAre("Mr. Smith paid 3.50 dollars.", "He left."));
}

TEST(SentenceSplitter, SplitsOtherScripts) {
  EXPECT_THAT(split("今日は雨です。明日は晴れます。"),
              ElementsAre("今日は雨です。", "明日は晴れます。"));
}

TEST(SentenceSplitter, WhiteSpaceHasNoSentences) {
  EXPECT_THAT(split(""), ElementsAre());
  EXPECT_THAT(split(" \n\u00A0 "), ElementsAre());
}

TEST(SentenceSplitter, KeepsInvalidUtf8) {
  EXPECT_THAT(split("A\xFF. B"), ElementsAre("A\xFF.", "B"));
}

}  // namespace
}  // namespace heed
