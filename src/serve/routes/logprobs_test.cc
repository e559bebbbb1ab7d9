#include "serve/routes/logprobs.h"

#include <gtest/gtest.h>

#include "model/network.h"
#include "model/presets.h"

namespace heed::serve {
namespace {

// Every byte is a token.
Model byte_model() {
  ModelConfig config = preset("bert-tiny");
  config.vocabulary = 259, config.width = 8, config.ffn = 8, config.heads = 1;
  config.family = Family::decoder_only, config.head = Head::language_model;
  config.encoder_layers = 0, config.decoder_layers = 1;
  config.token_types = 0, config.pooler = false, config.embedding_norm = false;
  return {std::make_shared<Network>(config, /*seed=*/1), make_tokenizer("byte")};
}

std::vector<std::string> texts_of(const std::vector<ListedToken>& tokens) {
  std::vector<std::string> texts;
  for (const ListedToken& token : tokens) texts.push_back(token.text);
  return texts;
}

TEST(LogprobsTest, ACharacterIsItsLastTokens) {
  const Model model = byte_model();
  const std::vector<int32_t> ids = model.tokenizer().encode_ids("aé€b", {.special_tokens = false});
  ASSERT_EQ(ids.size(), 7U);
  const std::vector<ListedToken> tokens =
      listed_tokens(model, {.ids = ids, .answer_tokens = 6, .answer = "é€b"});
  EXPECT_EQ(texts_of(tokens), (std::vector<std::string>{"", "é", "", "", "€", "b"}));
  EXPECT_EQ(tokens[1].offset, 0);
  EXPECT_EQ(tokens[5].offset, 2);  // in characters
  EXPECT_EQ(tokens[0].place, 1U);

  // A prompt as text gives the same, and the answer goes on behind it.
  const Completed echoed{
      .ids = ids, .answer_tokens = 1, .answer = "b", .prompt = "aé€", .prompt_is_text = true};
  EXPECT_EQ(texts_of(listed_tokens(model, echoed)),
            (std::vector<std::string>{"a", "", "é", "", "", "€", "b"}));
  EXPECT_EQ(listed_tokens(model, echoed).back().offset, 3);
}

TEST(LogprobsTest, WhatIsNoTextGoesByItsPiece) {
  const Model model = byte_model();
  const Tokenizer& tokenizer = model.tokenizer();
  const std::vector<int32_t> ids = tokenizer.encode_ids("aé", {.special_tokens = false});
  const std::span<const int32_t> all(ids);
  EXPECT_EQ(text_after(model, {}, ids[0]), "a");
  EXPECT_EQ(text_after(model, all.first(1), ids[1]), tokenizer.piece(ids[1]));
  EXPECT_EQ(text_after(model, all.first(2), ids[2]), "é");
  EXPECT_EQ(text_after(model, all, 1), tokenizer.piece(1));  // </s>
}

TEST(LogprobsTest, EndsAtAStopText) {
  const Model model = byte_model();
  const std::vector<int32_t> ids = model.tokenizer().encode_ids("abcd", {.special_tokens = false});
  const Completed cut{.ids = ids, .answer_tokens = 4, .answer = "ab", .is_cut = true};
  EXPECT_EQ(texts_of(listed_tokens(model, cut)), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace heed::serve
