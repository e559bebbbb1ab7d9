#include "text/unicode/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace heed {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (const TextSpan& s : word_spans(text)) {
    words.push_back(
        text.substr(static_cast<size_t>(s.begin), static_cast<size_t>(s.end - s.begin)));
  }
  return words;
}

TEST(WordSpans, LeavesOutWhiteSpaceOnly) {
  EXPECT_THAT(words_of(""), testing::IsEmpty());
  EXPECT_THAT(words_of(" \n"), testing::IsEmpty());
  EXPECT_THAT(words_of("Good  morning, \"Tom\"!"),
              testing::ElementsAre("Good", "morning", ",", "\"", "Tom", "\"", "!"));
  EXPECT_THAT(words_of("It's 3.5"), testing::ElementsAre("It's", "3.5"));
}

TEST(WordSpans, OfScriptsWithoutSpacesIsMoreThanOne) {
  EXPECT_GT(words_of("我喜欢读书").size(), 1u);
}

}  // namespace
}  // namespace heed
