#include <nlohmann/json.hpp>
#include <string>

#include "base/files/file_testing.h"
#include "heed/tokenizer.h"
#include "text/unicode/byte_alphabet.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;

class TokenizerFiles : public FolderTest {
 protected:
  TokenizerPtr load() const { return load_tokenizer(folder_); }
  Ids encode(std::string_view text) const { return load()->encode_ids(text); }
};

TEST_F(TokenizerFiles, BertVocabulary) {
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhe\n##llo\r\n\ncafe\nCaf\n##é\n");
  EXPECT_EQ(encode("HEllo [MASK] Café?"), (Ids{2, 5, 6, 4, 8, 1, 3}));
  EXPECT_EQ(load()->special_ids().mask, 4);
  EXPECT_EQ(load()->decode(Ids{2, 5, 6, 8, 3}), "hello cafe");
  EXPECT_EQ(load()->encode_pair("he", "cafe").types, (Ids{0, 0, 0, 1, 1}));
  write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(encode("Café"), (Ids{2, 9, 10, 3}));
  EXPECT_EQ(load_tokenizer(path("vocab.txt"))->encode_ids("Café"), (Ids{2, 9, 10, 3}));

  load()->save(path("copy"));
  EXPECT_EQ(read_text(path("copy/vocab.txt")), read_text(path("vocab.txt")));
  EXPECT_EQ(load_tokenizer(path("copy"))->encode_ids("Café"), (Ids{2, 9, 10, 3}));
}

TEST_F(TokenizerFiles, RejectsABadBertVocabulary) {
  write("vocab.txt", "a\n\xFF\n");
  expect_error(ErrorCode::corrupt_file, "vocab.txt: line 2 is not UTF-8", [&] { load(); });
  write("vocab.txt", "\n\n");
  expect_error(ErrorCode::corrupt_file, "must have tokens", [&] { load(); });
}

std::string byte_vocabulary(const std::vector<std::string>& more) {
  nlohmann::json vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary[byte_alphabet()[size_t(byte)]] = byte;
  for (const std::string& piece : more) vocabulary[piece] = vocabulary.size();
  return vocabulary.dump();
}

TEST_F(TokenizerFiles, Gpt2Files) {
  write("vocab.json", byte_vocabulary({"Ġa", "Ġab", "<|endoftext|>"}));
  write("merges.txt", "#version: 0.2\nĠ a\nĠa b\n");
  EXPECT_EQ(encode("c ab a<|endoftext|>"), (Ids{'c', 257, 256, 258}));
  EXPECT_EQ(load()->special_ids().end, 258);
  EXPECT_EQ(load()->decode(Ids{'c', 257, 258}), "c ab");
  EXPECT_EQ(load_tokenizer(path("vocab.json"))->encode_ids(" a"), (Ids{256}));
  write("tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_EQ(encode("ab"), (Ids{257}));
}

TEST_F(TokenizerFiles, RobertaFiles) {
  write("vocab.json", byte_vocabulary({"<s>", "<pad>", "</s>", "<mask>"}));
  write("merges.txt", "#version: 0.2\n");
  EXPECT_EQ(encode("a <mask>"), (Ids{256, 'a', 259, 258}));  // the mask strips the space
  EXPECT_EQ(load()->encode_pair("a", "b").ids, (Ids{256, 'a', 258, 258, 'b', 258}));
  write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  EXPECT_EQ(encode("a"), (Ids{'a'}));
}

TEST_F(TokenizerFiles, Qwen2Files) {
  write("vocab.json", byte_vocabulary({"Ã©"}));
  write("merges.txt", "Ã ©\n");
  write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder":
      {"300": {"content": "<|im_end|>", "special": true}}})");
  EXPECT_EQ(encode("e\u0301<|im_end|>"), (Ids{256, 300}));
}

TEST_F(TokenizerFiles, RejectsBadBpeFiles) {
  write("vocab.json", R"({"a": 0, "b": 1})");
  expect_error(ErrorCode::not_found, "merges.txt is missing",
               [&] { load_tokenizer(path("vocab.json")); });
  write("merges.txt", "#version: 0.2\na b\n");
  expect_error(ErrorCode::corrupt_file, "'ab' is not in the vocabulary", [&] { load(); });
  write("merges.txt", "#version: 0.2\nab\n");
  expect_error(ErrorCode::corrupt_file, "merges.txt: line 2: must be two tokens", [&] { load(); });
  write("merges.txt", "");
  write("vocab.json", "[1]");
  expect_error(ErrorCode::corrupt_file, "vocab.json: must be an object", [&] { load(); });
  write("vocab.json", "{");
  expect_error(ErrorCode::corrupt_file, "vocab.json is not JSON", [&] { load(); });
}

TEST_F(TokenizerFiles, TokenizerJson) {
  const std::string json = R"({"model": {"type": "WordLevel", "unk_token": "?",
      "vocab": {"?": 0, "a": 1, "b": 2}}, "pre_tokenizer": {"type": "WhitespaceSplit"}})";
  write("tokenizer.json", json);
  write("tokenizer_config.json", R"({"eos_token": "b"})");
  EXPECT_EQ(encode("a c b"), (Ids{1, 0, 2}));
  EXPECT_EQ(load()->special_ids().end, 2);
  load()->save(path("copy"));
  EXPECT_EQ(read_text(path("copy/tokenizer.json")), json);
  write("other.json", json);
  EXPECT_EQ(load_tokenizer(path("other.json"))->encode_ids("b"), (Ids{2}));
  write("tokenizer.json", json.substr(0, 40));
  expect_error(ErrorCode::corrupt_file, "tokenizer.json is not JSON", [&] { load(); });
}

}  // namespace
}  // namespace heed
