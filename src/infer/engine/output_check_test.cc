#include "infer/engine/output_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace heed {
namespace {

// As if each word were a token.
TranslationWarning check(const std::string& source, const std::string& target) {
  const auto words = [](const std::string& text) {
    return 2 + static_cast<int64_t>(std::ranges::count(text, ' '));
  };
  return check_output({.source = source,
                       .target = target,
                       .source_tokens = words(source),
                       .target_tokens = words(target)});
}

std::string times(int n, const std::string& text) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

const std::string kLong =
    "the old man who lives next door told us that he had never seen so much snow in this town and "
    "that the road to the station was closed";

TEST(OutputCheck, PassesOrdinaryTranslations) {
  EXPECT_EQ(check("Good morning.", "Guten Morgen."), TranslationWarning::none);
  EXPECT_EQ(check("Yes.", "Ja, das ist richtig, das meine ich auch."), TranslationWarning::none);
  EXPECT_EQ(check(kLong, kLong.substr(0, 80)), TranslationWarning::none);
  EXPECT_EQ(check("It is very, very, very good.", "Es ist sehr, sehr, sehr gut."),
            TranslationWarning::none);
}

TEST(OutputCheck, FindsLoops) {
  EXPECT_EQ(check("BERLIN IS BIG", "S" + times(20, "-S")), TranslationWarning::repetition);
  EXPECT_EQ(check(kLong, "er sagte" + times(4, " zu einem solchen Tag")),
            TranslationWarning::repetition);
  // Not to the letter: most trigrams occur again.
  std::string words;
  for (int i = 0; i < 6; ++i) words += "an einem Tag mit dem Hund " + std::to_string(i) + " ";
  EXPECT_EQ(check(kLong, words), TranslationWarning::repetition);
}

TEST(OutputCheck, AllowsWhatTheSourceRepeats) {
  EXPECT_EQ(check(times(20, "ha "), times(20, "ha ")), TranslationWarning::none);
  EXPECT_EQ(check(std::string(60, '.'), std::string(60, '.')), TranslationWarning::none);
}

TEST(OutputCheck, FindsWhatIsTooShort) {
  EXPECT_EQ(check(kLong, "Der Mann."), TranslationWarning::too_short);
  EXPECT_EQ(check("Six words may become only one.", "Eins."), TranslationWarning::none);
  // Bytes of other scripts are not tokens: both must be few.
  EXPECT_EQ(check_output({.source = kLong,
                          .target = kLong.substr(0, 100),
                          .source_tokens = 60,
                          .target_tokens = 20}),
            TranslationWarning::none);
}

TEST(OutputCheck, FindsWhatIsTooLong) {
  CheckedOutput output{.source = "Hello.",
                       .target = "Hallo, mein Freund.",
                       .source_tokens = 3,
                       .target_tokens = 73,
                       .reached_default = true};
  EXPECT_EQ(check_output(output), TranslationWarning::too_long);
  // What the caller has limited is as long as was asked for.
  output.reached_default = false, output.reached_requested = true;
  EXPECT_EQ(check_output(output), TranslationWarning::none);
}

}  // namespace
}  // namespace heed
