#include "text/tokenizer_json/split_patterns.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "text/unicode/regex.h"

namespace heed {
namespace {

std::vector<std::string> by_hand(PieceEnd end_of, std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t end = end_of(text, at);
    pieces.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

std::vector<std::string> by_pcre2(std::string_view pattern, std::string_view text) {
  std::vector<std::string> pieces;
  Regex(std::string(pattern)).each_match(text, [&](size_t begin, size_t end) {
    pieces.emplace_back(text.substr(begin, end - begin));
  });
  return pieces;
}

using Texts = std::vector<std::string>;

TEST(SplitPatterns, Examples) {
  EXPECT_EQ(by_hand(gpt2_piece_end, "I'm 42 ok!?  x\n\ny  "),
            (Texts{"I", "'m", " 42", " ok", "!?", " ", " x", "\n", "\n", "y", "  "}));
  EXPECT_EQ(by_hand(llama3_piece_end, "I'M 1234 (ok)!\n\n  x\ty"),
            (Texts{"I", "'M", " ", "123", "4", " (", "ok", ")!\n\n", " ", " x", "\ty"}));
  EXPECT_EQ(by_hand(qwen2_piece_end, "123"), (Texts{"1", "2", "3"}));
}

TEST(SplitPatterns, AreFoundByTheirText) {
  EXPECT_EQ(find_split_pattern(kGpt2Pattern), &gpt2_piece_end);
  EXPECT_EQ(find_split_pattern(kLlama3Pattern), &llama3_piece_end);
  EXPECT_EQ(find_split_pattern(kQwen2Pattern), &qwen2_piece_end);
  EXPECT_EQ(find_split_pattern("x"), nullptr);
}

// Random texts of the relevant characters: both matchers must agree.
TEST(SplitPatterns, AgreeWithPcre2) {
  const std::array<std::string, 30> characters = {
      " ", " ",  "  ",  "\n",  "\r",      "\r\n", "\t", "\u00A0", "\u2028",  "\u0085",
      "'", "'s", "'LL", "'Re", "'\u017F", "v",    "e",  "D",      "é",       "東",
      "ß", "1",  "23",  "½",   "٣",       ".",    "!?", "€",      "e\u0301", "👍"};
  std::mt19937 random(7);
  const struct {
    std::string_view pattern;
    PieceEnd end_of;
  } kinds[] = {{kGpt2Pattern, gpt2_piece_end},
               {kLlama3Pattern, llama3_piece_end},
               {kQwen2Pattern, qwen2_piece_end}};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const size_t length = random() % 12;
    for (size_t i = 0; i < length; ++i) text += characters[random() % characters.size()];
    for (const auto& kind : kinds) {
      ASSERT_EQ(by_hand(kind.end_of, text), by_pcre2(kind.pattern, text))
          << "'" << text << "' round " << round << " of seed 7, pattern " << kind.pattern;
    }
  }
}

TEST(SplitPatterns, CoverAnyBytes) {
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    std::string text(random() % 20, '\0');
    for (char& c : text) c = static_cast<char>(random());
    for (const PieceEnd end_of : {gpt2_piece_end, llama3_piece_end, qwen2_piece_end}) {
      std::string joined;
      for (const std::string& piece : by_hand(end_of, text)) joined += piece;
      ASSERT_EQ(joined, text);
    }
  }
}

}  // namespace
}  // namespace heed
