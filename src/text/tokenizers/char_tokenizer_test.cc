#include "text/tokenizers/char_tokenizer.h"

#include "base/files/file_testing.h"
#include "text/tokenizers/tokenizer_testing.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;

TEST(CharTokenizer, EncodesOneIdPerCharacter) {
  const TokenizerPtr chars = make_char_tokenizer({.characters = {U'a', U'é', U'\n', U'😀'}});
  EXPECT_EQ(chars->vocabulary_size(), 7);
  EXPECT_EQ(chars->encode_ids("éa\n😀b"), (Ids{4, 3, 5, 6, 2, 1}));
  EXPECT_EQ(chars->encode_ids("", {.special_tokens = false}), Ids{});
  EXPECT_EQ(chars->decode(Ids{4, 3, 2, 6, 1}), "éa😀");
  EXPECT_EQ(chars->decode(Ids{4, 2, 1}, {.skip_special_tokens = false}), "é<unk></s>");
  EXPECT_EQ(chars->piece(6), "😀");
  EXPECT_EQ(chars->find("é"), 4);
  EXPECT_EQ(chars->find("z"), std::nullopt);
  EXPECT_TRUE(chars->begins_word(5));
  EXPECT_FALSE(chars->begins_word(3));
}

TEST(CharTokenizer, EncodesInvalidBytesAsUnknown) {
  const TokenizerPtr chars = make_char_tokenizer({.characters = {U'a'}});
  const Encoding e = chars->encode(
      "a\xe2\x82"
      "a\xff</s>");
  EXPECT_EQ(e.ids, (Ids{3, 2, 3, 2, 1}));
  EXPECT_EQ(e.offsets, (std::vector<TextSpan>{{0, 1}, {1, 3}, {3, 4}, {4, 5}, {5, 9}}));
}

TEST(CharTokenizer, LowercasesText) {
  const TokenizerPtr chars =
      make_char_tokenizer({.characters = {U'a', U'ä', U'i', U'\u0307'}, .lowercase = true});
  EXPECT_EQ(chars->encode_ids("AÄİ", {.special_tokens = false}), (Ids{3, 4, 5, 6}));
}

TEST(CharTokenizer, EncodesAsciiWithoutAFile) {
  const TokenizerPtr chars = make_tokenizer("char");
  EXPECT_EQ(chars->vocabulary_size(), 100);
  const std::string text = "All 95: ~ and\ttab\n";
  EXPECT_EQ(chars->decode(chars->encode_ids(text)), text);
  expect_good_offsets(*chars, "naïve \xff <unk> 😀");
}

TEST(CharTokenizer, RejectsDuplicateTokens) {
  expect_error(ErrorCode::invalid_argument, "got </s> twice",
               [] { make_char_tokenizer({.characters = {}, .special_tokens = {"</s>"}}); });
}

class CharTokenizerFolder : public FolderTest {};

TEST_F(CharTokenizerFolder, RoundTripsThroughAFolder) {
  make_char_tokenizer(
      {.characters = {U'"', U'\\', U'ß', U'\n'}, .special_tokens = {"<de>"}, .lowercase = true})
      ->save(path("out"));
  for (const std::string& place : {path("out"), path("out/tokenizer.json")}) {
    const TokenizerPtr loaded = load_tokenizer(place);
    EXPECT_EQ(loaded->vocabulary_size(), 8);
    EXPECT_EQ(loaded->encode_ids("<de>\"\\ß\nẞ"), (Ids{3, 4, 5, 6, 7, 6, 1}));
  }
}

TEST_F(CharTokenizerFolder, RejectsDamagedFiles) {
  make_char_tokenizer({.characters = {U'a'}})->save(folder_);
  const std::string good = read_text(path("tokenizer.json"));
  const auto expect_rejected = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    write("tokenizer.json", bad);
    expect_error(ErrorCode::corrupt_file, "tokenizer.json", [&] { load_tokenizer(folder_); });
  };
  expect_rejected("\"a\": 3", "\"a\": 2");
  expect_rejected("\"a\": 3", "\"a\": 4");
  expect_rejected("\"a\": 3", "\"ab\": 3");
  expect_rejected("\"a\": 3", "\"a\": \"3\"");
  expect_rejected("\"vocab\"", "\"vocabulary\"");
  expect_rejected("\"model\"", "{");
}

}  // namespace
}  // namespace heed
