#include "infer/engine/text_pieces.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "infer/engine/engine_testing.h"

namespace heed {
namespace {

TextSpan all_of(const std::string& text) { return {0, static_cast<int64_t>(text.size())}; }

// The text before the cut.
std::string first_half(const std::string& text) {
  return text.substr(0, static_cast<size_t>(find_cut(text, all_of(text))));
}

TEST(TextPieces, AreCutAfterClausesThenWordsThenCharacters) {
  const std::string clause = "when the rain had stopped and all was quiet again";
  EXPECT_EQ(first_half(clause + ", " + clause + " and again"), clause + ", ");
  EXPECT_EQ(first_half(clause + " " + clause), clause + " ");
  std::string hans;  // Chinese has no spaces
  for (int i = 0; i < 40; ++i) hans += "\u6C34";
  EXPECT_EQ(first_half(hans).size(), 60u);
  EXPECT_EQ(find_cut("x", {0, 1}), -1);
  // Not near an edge.
  EXPECT_EQ(first_half("a, " + std::string(40, 'x')).size(), 21u);
}

TEST(TextPieces, FindData) {
  const std::string data(300, 'A'), text = "See " + data + " and go.";
  const auto found = find_data(text, all_of(text));
  ASSERT_TRUE(found);
  EXPECT_EQ(part(text, *found), data);
  EXPECT_FALSE(find_data(text, {0, 100}));
  EXPECT_FALSE(
      find_data(text, {static_cast<int64_t>(data.size()), static_cast<int64_t>(text.size())}));
  std::string hans;
  for (int i = 0; i < 400; ++i) hans += "\u6C34";
  EXPECT_FALSE(find_data(hans, all_of(hans)));
}

TEST(TextPieces, AreTrimmed) {
  const std::string text = " \t one two\u00A0";
  EXPECT_EQ(part(text, trimmed(text, all_of(text))), "one two");
  EXPECT_EQ(part("  ", trimmed("  ", {0, 2})), "");
}

// A byte is a token, and the context has room for 92.
TEST(PieceLimits, AreThoseOfTheModelAndOfTraining) {
  const TranslateOptions options{};
  const Model small = tiny_model(Family::encoder_decoder);
  const PieceLimits limits(small, options);
  EXPECT_TRUE(limits.fits(std::string(90, 'x')));
  EXPECT_FALSE(limits.fits(std::string(100, 'x')));
  EXPECT_FALSE(limits.can_halve(std::string(60, 'x')));
  EXPECT_TRUE(limits.can_halve(std::string(90, 'x')));
  ModelConfig config = tiny_config(Family::encoder_decoder);
  config.max_positions = 4096;
  const Model large(std::make_shared<const Network>(config, 1), small.tokenizer_pointer());
  EXPECT_TRUE(PieceLimits(large, options).fits(std::string(512, 'x')));
  EXPECT_FALSE(PieceLimits(large, options).fits(std::string(600, 'x')));
}

}  // namespace
}  // namespace heed
