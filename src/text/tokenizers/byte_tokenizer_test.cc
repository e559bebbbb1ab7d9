#include "text/tokenizers/byte_tokenizer.h"

#include "base/files/file_testing.h"
#include "text/tokenizers/tokenizer_folder.h"
#include "text/tokenizers/tokenizer_testing.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;

TEST(ByteTokenizer, ByteIdsStartAtThree) {
  const TokenizerPtr bytes = make_tokenizer("byte");
  EXPECT_EQ(bytes->vocabulary_size(), 384);
  EXPECT_EQ(bytes->encode_ids("Hé"), (Ids{75, 0xc3 + 3, 0xa9 + 3, 1}));
  EXPECT_EQ(bytes->encode_ids(""), Ids{1});
  EXPECT_EQ(bytes->encode_ids("H", {.special_tokens = false}), Ids{75});
  EXPECT_EQ(bytes->piece(75), "H");
  EXPECT_EQ(bytes->find("</s>"), 1);
  EXPECT_EQ(bytes->find("<extra_id_124>"), 383);
  EXPECT_EQ(bytes->find("<extra_id_125>"), std::nullopt);
  EXPECT_EQ(bytes->special_ids().pad, 0);
}

TEST(ByteTokenizer, FindsSpecialTokensInText) {
  const TokenizerPtr bytes = make_tokenizer("byte");
  EXPECT_EQ(bytes->encode_ids("a <extra_id_1> </s> "), (Ids{100, 35, 260, 1}));
  EXPECT_EQ(bytes->decode(Ids{100, 260, 1}), "a");
  EXPECT_EQ(bytes->decode(Ids{100, 260, 1}, {.skip_special_tokens = false}), "a<extra_id_1></s>");
}

TEST(ByteTokenizer, ReturnsOffsets) {
  const Encoding e = make_tokenizer("byte")->encode("é<pad>x");
  EXPECT_EQ(e.ids, (Ids{0xc3 + 3, 0xa9 + 3, 0, 'x' + 3, 1}));
  EXPECT_EQ(e.offsets, (std::vector<TextSpan>{{0, 1}, {1, 2}, {2, 7}, {7, 8}, {8, 8}}));
  EXPECT_EQ(e.is_special, (std::vector<uint8_t>{0, 0, 0, 0, 1}));
  const Encoding pair = make_tokenizer("byte")->encode_pair("a", "b");
  EXPECT_EQ(pair.ids, (Ids{100, 1, 101, 1}));
  EXPECT_EQ(pair.types, (Ids{0, 0, 0, 0}));
}

TEST(ByteTokenizer, RoundTripsAnyBytes) {
  const TokenizerPtr bytes = make_tokenizer("byte");
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      ASSERT_EQ(bytes->decode(bytes->encode_ids(text)), text);
    }
  }
}

TEST(ByteTokenizer, RejectsIdsBeyondTheVocabulary) {
  for (const int32_t id : {-1, 384}) {
    expect_error(ErrorCode::invalid_argument, "got " + std::to_string(id),
                 [&] { make_tokenizer("byte")->decode(Ids{id}); });
  }
}

TEST(ByteTokenizer, EqualsByT5) {
  expect_golden(*make_tokenizer("byte"), golden_tokenizer("byt5"));
}

class ByteTokenizerFolder : public FolderTest {};

TEST_F(ByteTokenizerFolder, RoundTripsThroughAFolder) {
  make_byte_tokenizer({.extra_ids = 2, .special_tokens = {"<de>", "<fr>"}})->save(path("out"));
  const TokenizerPtr loaded = load_tokenizer(path("out"));
  EXPECT_EQ(loaded->vocabulary_size(), 263);
  EXPECT_EQ(loaded->encode_ids("<extra_id_1><fr>"), (Ids{260, 262, 1}));
}

TEST_F(ByteTokenizerFolder, LoadsFromTheClassNameAlone) {
  write("config.json", R"({"model_type": "t5", "tokenizer_class": "ByT5Tokenizer"})");
  EXPECT_EQ(load_tokenizer(folder_)->vocabulary_size(), 384);
  write("tokenizer_config.json", R"({"extra_ids": -1})");
  expect_error(ErrorCode::corrupt_file, "\"extra_ids\" must be from 0",
               [&] { load_tokenizer(folder_); });
  write("tokenizer_config.json", R"({"extra_ids": "many"})");
  expect_error(ErrorCode::corrupt_file, "must be a whole number", [&] { load_tokenizer(folder_); });
  write("tokenizer_config.json", "[1");
  expect_error(ErrorCode::corrupt_file, "tokenizer_config.json is not JSON",
               [&] { load_tokenizer(folder_); });
}

}  // namespace
}  // namespace heed
