#include "infer/engine/text_pieces.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "infer/engine/engine_testing.h"

namespace heed {
namespace {

// A byte is a token, and the context has room for 92.
class TextPiecesTest : public testing::Test {
 protected:
  const Model model_ = tiny_model(Family::encoder_decoder);
  const TranslateOptions options_{};
  const TextSplitter splitter_{model_, options_};

  std::vector<std::string> pieces(const std::string& text) const {
    std::vector<std::string> list;
    for (const TextPiece& piece : splitter_.split(text)) {
      list.push_back((piece.is_copied ? "=" : "") + std::string(part(text, piece.span)));
    }
    return list;
  }
};

using Texts = std::vector<std::string>;

TEST_F(TextPiecesTest, AreSentences) {
  EXPECT_EQ(pieces("One. Two!  Three?"), (Texts{"One.", "Two!", "Three?"}));
  EXPECT_EQ(pieces(" "), Texts{});
}

TEST_F(TextPiecesTest, AreCutAfterClausesThenWordsThenCharacters) {
  const std::string clause = "when the rain had stopped and all was quiet again";  // 49 bytes
  EXPECT_EQ(pieces(clause + ", " + clause), (Texts{clause + ",", clause}));
  EXPECT_EQ(pieces(clause + " " + clause), (Texts{clause, clause}));
  std::string hans;  // Chinese has no spaces
  for (int i = 0; i < 40; ++i) hans += "\u6C34";
  const Texts halves = pieces(hans);
  ASSERT_EQ(halves.size(), 2u);
  EXPECT_EQ(halves[0] + halves[1], hans);
  EXPECT_EQ(halves[0].size() % 3, 0u);
}

TEST_F(TextPiecesTest, CopyData) {
  const std::string data(300, 'A');
  EXPECT_EQ(pieces(data), Texts{"=" + data});
  EXPECT_EQ(pieces("See " + data + " and go."), (Texts{"See", "=" + data, "and go."}));
  EXPECT_EQ(pieces(std::string(150, 'A')).size(), 2u);  // a word, though a long one
}

TEST_F(TextPiecesTest, HaveHalvesIfTheyAreLong) {
  const std::string text =
      "the first part of a long sentence without any mark, and then the second part of it";
  const auto halves = splitter_.halves(text, {0, static_cast<int64_t>(text.size())});
  ASSERT_TRUE(halves);
  EXPECT_EQ(part(text, halves->first), "the first part of a long sentence without any mark,");
  EXPECT_EQ(part(text, halves->second), "and then the second part of it");
  EXPECT_FALSE(splitter_.halves(text, {0, 40}));
}

TEST_F(TextPiecesTest, CoverTheText) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "word" + std::string(i % 7 == 0 ? ", " : " ");
  const std::vector<TextPiece> pieces = splitter_.split(text);
  int64_t at = 0;
  for (const TextPiece& piece : pieces) {
    EXPECT_EQ(part(text, {at, piece.span.begin}).find_first_not_of(' '), std::string_view::npos);
    EXPECT_LE(piece.span.end - piece.span.begin, 92);
    at = piece.span.end;
  }
  EXPECT_EQ(part(text, {at, static_cast<int64_t>(text.size())}), " ");
}

}  // namespace
}  // namespace heed
