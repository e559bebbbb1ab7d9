#include "text/tokenizers/tokenizer_folder.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

class TokenizerFolderTest : public FolderTest {};

TEST_F(TokenizerFolderTest, AcceptsAnEmptyFolder) {
  const TokenizerFolder folder(folder_);
  EXPECT_EQ(folder.tokenizer_class(), "");
  EXPECT_FALSE(folder.has("tokenizer.json"));
  EXPECT_EQ(folder.flag("legacy"), std::nullopt);
  EXPECT_EQ(folder.token("eos_token"), std::nullopt);
  EXPECT_TRUE(folder.added_tokens().empty());
}

TEST_F(TokenizerFolderTest, FindsTheClass) {
  write("config.json", R"({"model_type": "marian"})");
  EXPECT_EQ(TokenizerFolder(folder_).tokenizer_class(), "MarianTokenizer");
  write("config.json", R"({"model_type": "t5", "tokenizer_class": "ByT5Tokenizer"})");
  EXPECT_EQ(TokenizerFolder(folder_).tokenizer_class(), "ByT5Tokenizer");
  write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizerFast"})");
  EXPECT_EQ(TokenizerFolder(folder_).tokenizer_class(), "LlamaTokenizer");
}

TEST_F(TokenizerFolderTest, ReadsSettingsAndTokens) {
  write("tokenizer_config.json", R"({"legacy": false, "extra_ids": 7, "source_lang": null,
    "eos_token": {"content": "<end>", "lstrip": false},
    "added_tokens_decoder": {"5": {"content": "<x>", "rstrip": true, "special": false}},
    "additional_special_tokens": ["<y>"]})");
  write("special_tokens_map.json", R"({"eos_token": "no", "bos_token": "<s>"})");
  const TokenizerFolder folder(folder_);
  EXPECT_EQ(folder.flag("legacy"), false);
  EXPECT_EQ(folder.number("extra_ids"), 7);
  EXPECT_EQ(folder.text("source_lang"), std::nullopt);
  EXPECT_EQ(folder.token("eos_token"), "<end>");
  EXPECT_EQ(folder.token("bos_token"), "<s>");
  const auto added = folder.added_tokens();
  ASSERT_EQ(added.size(), 2u);
  EXPECT_EQ(added[0].text, "<x>");
  EXPECT_EQ(added[0].id, 5);
  EXPECT_TRUE(added[0].strip_right);
  EXPECT_FALSE(added[0].strip_left);
  EXPECT_FALSE(added[0].special);
  EXPECT_EQ(added[1].text, "<y>");
  EXPECT_EQ(added[1].id, std::nullopt);
}

TEST(ParseJson, ReportsThePositionOfAnError) {
  const auto expect_rejected = [](const std::string& text, const std::string& why) {
    expect_error(ErrorCode::corrupt_file, "f.json is not JSON: " + why,
                 [&] { parse_json(text, "f.json"); });
  };
  expect_rejected("", "it is empty");
  expect_rejected(" \n", "it is empty");
  expect_rejected("{\"a\": [1, 2", "it is truncated");
  expect_rejected("x", "syntax error in line 1, column 1");
  expect_rejected("{\n  \"a\": 1,\n  \"b\": x\n}\n", "syntax error in line 3, column 8");
  expect_rejected("{}\n}", "syntax error in line 2, column 1");
  expect_rejected("{\"a\": 1e999}", "a number is out of range");
}

TEST_F(TokenizerFolderTest, RejectsValuesOfTheWrongType) {
  write("tokenizer_config.json", R"({"legacy": 1, "eos_token": 3,
    "added_tokens_decoder": {"five": "<x>"}})");
  const TokenizerFolder folder(folder_);
  expect_error(ErrorCode::corrupt_file, "\"legacy\" must be true or false",
               [&] { folder.flag("legacy"); });
  expect_error(ErrorCode::corrupt_file, "\"eos_token\" must be",
               [&] { folder.token("eos_token"); });
  expect_error(ErrorCode::corrupt_file, "added_tokens_decoder", [&] { folder.added_tokens(); });
  write("special_tokens_map.json", "{\"x\": " + std::string(100'000, '['));
  expect_error(ErrorCode::corrupt_file,
               "special_tokens_map.json: lists and objects must not be nested",
               [&] { TokenizerFolder again(folder_); });
  write("special_tokens_map.json", "{}");
  write("config.json", "3");
  expect_error(ErrorCode::corrupt_file, "config.json: must be a JSON object",
               [&] { TokenizerFolder again(folder_); });
}

}  // namespace
}  // namespace heed
