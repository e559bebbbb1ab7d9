#include "text/tokenizer_json/json_tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/files/file_testing.h"
#include "text/tokenizers/tokenizer_folder.h"
#include "text/tokenizers/tokenizer_testing.h"
#include "text/unicode/byte_alphabet.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

// Every line of the reference tokenizers.
TEST(GoldenTokenizers, BertUncased) { expect_golden(golden_tokenizer("bert-uncased")); }
TEST(GoldenTokenizers, Gpt2) { expect_golden(golden_tokenizer("gpt2")); }
TEST(GoldenTokenizers, Gpt2FromVocabAndMerges) {
  expect_golden(golden_tokenizer("gpt2"), "merges.txt");
}
TEST(GoldenTokenizers, MiniLm) { expect_golden(golden_tokenizer("minilm")); }
TEST(GoldenTokenizers, Mistral) { expect_golden(golden_tokenizer("mistral")); }
TEST(GoldenTokenizers, T5) { expect_golden(golden_tokenizer("t5")); }

// Small tokenizers of model families: Llama 3, Qwen 2, RoBERTa, BLOOM, …
class Families : public testing::Test {
 protected:
  static Json read(const std::string& name) {
    return read_json(golden_tokenizer("families/" + name));
  }
  static TokenizerPtr make(const std::string& family) {
    static const Json families = read("families.json"), pieces = read("pieces.json");
    Json document = families.at(family);
    document["model"].update(pieces.at(document["pieces"].get<std::string>()));
    return make_json_tokenizer(document, {.place = family});
  }
};

TEST_F(Families, EqualTheReference) {
  const Json texts = read("texts.json");
  std::ifstream lines(golden_tokenizer("families/expected.jsonl"));
  std::string family;
  TokenizerPtr tokenizer;
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const Json expected = Json::parse(line);
    if (expected.at("family") != family) {
      family = expected.at("family");
      tokenizer = make(family);
    }
    if (expected.contains("pair")) {
      const Encoding pair = tokenizer->encode_pair("Hello there", "my friend");
      EXPECT_EQ(pair.ids, expected.at("pair").get<Ids>()) << family;
      EXPECT_EQ(pair.types, expected.at("types").get<Ids>()) << family;
      continue;
    }
    const std::string text = texts.at(expected.at("text").get<size_t>());
    const Ids ids = expected.at("ids");
    EXPECT_EQ(tokenizer->encode(text).ids, ids) << family << ": " << text;
    EXPECT_EQ(tokenizer->encode_ids(text), ids) << family << ": " << text;
    EXPECT_EQ(tokenizer->encode_ids(text, {.special_tokens = false}),
              expected.at("plain").get<Ids>())
        << family << ": " << text;
    EXPECT_EQ(tokenizer->decode(ids), expected.at("decoded")) << family << ": " << text;
    expect_good_offsets(*tokenizer, text);
  }
  EXPECT_GT(cases, 1000);
}

std::string random_bytes(std::mt19937& random, size_t most) {
  std::string text(random() % most, '\0');
  // Letters and spaces too: random bytes alone never form a word.
  for (char& c : text)
    c = static_cast<char>(random() % 2 ? random() : "the of \n'ing"[random() % 12]);
  return text;
}

TEST_F(Families, AcceptAnyBytes) {
  std::mt19937 random(5);
  const Json families = read("families.json");
  for (const auto& [family, unused] : families.items()) {
    const TokenizerPtr tokenizer = make(family);
    for (int round = 0; round < 100; ++round) {
      const std::string text = random_bytes(random, 30);
      const Encoding encoding = tokenizer->encode(text);
      EXPECT_EQ(encoding.ids, tokenizer->encode_ids(text)) << family;
      expect_good_offsets(*tokenizer, text);
      tokenizer->decode(encoding.ids);
    }
  }
}

TEST_F(Families, ByteLevelTokenizersRoundTripAnyBytes) {
  std::mt19937 random(6);
  for (const char* family : {"llama3", "roberta", "bloom", "deepseek", "gpt4o", "starcoder"}) {
    const TokenizerPtr tokenizer = make(family);
    for (int round = 0; round < 300; ++round) {
      const std::string text = random_bytes(random, 40);
      const Ids ids = tokenizer->encode_ids(text, {.special_tokens = false});
      ASSERT_EQ(tokenizer->decode(ids, {.skip_special_tokens = false}), text) << family;
    }
  }
}

TEST_F(Families, AreThreadSafe) {
  const TokenizerPtr tokenizer = make("llama3");
  const std::string text = "What light through yonder window breaks? 12345 naïve";
  const Ids expected = tokenizer->encode_ids(text);
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) count += tokenizer->encode_ids(text) != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST_F(Families, HaveSpecialIdsAndWordBeginnings) {
  const TokenizerPtr roberta = make("roberta");
  EXPECT_EQ(roberta->special_ids().begin, 0);
  EXPECT_EQ(roberta->special_ids().pad, 1);
  EXPECT_EQ(roberta->special_ids().end, 2);
  EXPECT_EQ(roberta->special_ids().mask, roberta->find("<mask>"));
  EXPECT_TRUE(roberta->begins_word(*roberta->find("Ġthe")));
  EXPECT_FALSE(roberta->begins_word(*roberta->find("th")));
  const TokenizerPtr bert = make("bert");
  EXPECT_EQ(bert->special_ids().classify, 2);
  EXPECT_EQ(bert->special_ids().separate, 3);
  EXPECT_EQ(bert->special_ids().unknown, 1);
  EXPECT_FALSE(bert->begins_word(*bert->find("##ing")));
  EXPECT_TRUE(bert->begins_word(*bert->find("the")));
  const TokenizerPtr llama = make("llama2");
  EXPECT_TRUE(llama->begins_word(*llama->find("▁the")));
  EXPECT_FALSE(llama->begins_word(*llama->find("e")));
  EXPECT_EQ(llama->find("no such piece"), std::nullopt);
  EXPECT_EQ(llama->piece(1), "<s>");
}

Json small_bert() {
  return Json::parse(R"({"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2}},
      "pre_tokenizer": {"type": "BertPreTokenizer"}, "normalizer": {"type": "BertNormalizer"},
      "added_tokens": [{"id": 5, "content": "[X]", "special": true}]})");
}

TEST(JsonTokenizer, ReturnsOffsets) {
  const TokenizerPtr tokenizer = make_json_tokenizer(small_bert(), {});
  const Encoding e = tokenizer->encode("A\xFF á[X] ÁB");
  EXPECT_EQ(e.ids, (Ids{1, 1, 5, 1, 2}));
  EXPECT_EQ(e.offsets, (std::vector<TextSpan>{{0, 1}, {3, 5}, {5, 8}, {9, 11}, {11, 12}}));
}

TEST(JsonTokenizer, Decodes) {
  const TokenizerPtr tokenizer = make_json_tokenizer(small_bert(), {});
  EXPECT_EQ(tokenizer->vocabulary_size(), 6);
  EXPECT_EQ(tokenizer->decode(Ids{1, 2, 5}),
            "a ##b");  // without a decoder: tokens joined by spaces
  EXPECT_EQ(tokenizer->decode(Ids{1, 5}, {.skip_special_tokens = false}), "a [X]");
  EXPECT_EQ(tokenizer->decode(Ids{1, 4}), "a");  // 4 is unused
  expect_error(ErrorCode::invalid_argument, "6", [&] { tokenizer->decode(Ids{6}); });
  expect_error(ErrorCode::invalid_argument, "-1", [&] { tokenizer->decode(Ids{-1}); });
}

TEST(JsonTokenizer, RejectsDuplicateIds) {
  Json taken = small_bert();
  taken["added_tokens"][0]["id"] = 1;
  expect_error(ErrorCode::corrupt_file, "added_tokens: '[X]' has the id 1 of 'a'",
               [&] { make_json_tokenizer(taken, {}); });
  Json twice = small_bert();
  twice["added_tokens"].push_back({{"id", 5}, {"content", "[Y]"}});
  expect_error(ErrorCode::corrupt_file, "'[Y]' has the id 5 of '[X]'",
               [&] { make_json_tokenizer(twice, {}); });
}

TEST(JsonTokenizer, RejectsMissingFields) {
  expect_error(ErrorCode::corrupt_file, "f.json: 'model' is missing",
               [] { make_json_tokenizer(Json::object(), {.place = "f.json"}); });
  expect_error(ErrorCode::corrupt_file, "f.json: must be an object, got a list",
               [] { make_json_tokenizer(Json::array(), {.place = "f.json"}); });
}

}  // namespace
}  // namespace heed
