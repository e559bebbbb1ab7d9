#include "heed/model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "heed/engine.h"
#include "heed/error.h"
#include "infer/engine/engine_testing.h"

namespace heed {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string folder(const std::string& model) {
  return std::string(HEED_TEST_DATA) + "/golden/models/" + model;
}

TEST(Model, TellsWhatItIs) {
  const Model marian = Model::load(folder("marian"));
  EXPECT_EQ(marian.family(), "encoder_decoder");
  EXPECT_EQ(marian.head(), "language_model");
  EXPECT_TRUE(marian.can_generate());
  EXPECT_TRUE(marian.has_source());
  EXPECT_TRUE(marian.positions_are_fixed());
  EXPECT_EQ(marian.max_positions(), 64);
  EXPECT_EQ(marian.search_options().forced_last_id, 0);
  EXPECT_EQ(marian.search_options().banned_ids.size(), 1u);
  EXPECT_TRUE(marian.has_setting("bad_words_ids"));
  EXPECT_FALSE(marian.has_setting("num_beams"));
  EXPECT_EQ(marian.task(), "");

  const Model bert = Model::load(folder("bert-mlm"));
  EXPECT_EQ(bert.family(), "encoder_only");
  EXPECT_FALSE(bert.can_generate());
}

TEST(Model, HasLabelsOnlyWithAHeadForThem) {
  ModelConfig config = tiny_config(Family::decoder_only);
  config.labels = 2'000'000'000;
  EXPECT_TRUE(Model(std::make_shared<const Network>(config), nullptr).labels().empty());
  config = tiny_config(Family::encoder_only);
  config.head = Head::classifier, config.labels = 2;
  EXPECT_EQ(Model(std::make_shared<const Network>(config), nullptr).labels(),
            (std::vector<std::string>{"LABEL_0", "LABEL_1"}));
}

TEST(Model, AMissingTokenizerIsAnErrorWhenItIsAskedFor) {
  const Model model = Model::load(folder("gpt2"));
  EXPECT_FALSE(model.has_tokenizer());
  EXPECT_THROW(model.tokenizer(), Error);
}

TEST(Model, FromMemoryIsTheSame) {
  const std::string weights = read(folder("gpt2") + "/model.safetensors");
  ModelFiles files;
  files.config = read(folder("gpt2") + "/config.json");
  for (const char c : weights) files.tensors.push_back(static_cast<std::byte>(c));
  files.config.replace(files.config.find('{'), 1, R"({"finetuning_task": "poetry",)");
  files.generation = R"({"max_new_tokens": 5})";
  const Model copy = Model::from_memory(files);
  EXPECT_EQ(copy.task(), "poetry");
  EXPECT_EQ(copy.search_options().max_new_tokens, 5);
  SearchOptions search = copy.search_options();
  Engine original(Model::load(folder("gpt2")), {.threads = 1, .kv_memory_bytes = 4 << 20});
  Engine engine(copy, {.threads = 1, .kv_memory_bytes = 4 << 20});
  EXPECT_EQ(engine.run_ids({{5, 6, 7}}, search), original.run_ids({{5, 6, 7}}, search));
}

TEST(Model, TakesPairsIfItsConfigSaysSo) {
  const auto takes_pairs = [](const std::string& kind, const std::string& key) {
    ModelFiles files;
    files.config = read(folder(kind) + "/config.json");
    files.config.replace(files.config.find('{'), 1, "{" + key);
    for (const char c : read(folder(kind) + "/model.safetensors")) {
      files.tensors.push_back(static_cast<std::byte>(c));
    }
    return Model::from_memory(files).takes_pairs();
  };
  EXPECT_FALSE(takes_pairs("bert-classify", ""));
  EXPECT_TRUE(takes_pairs("bert-classify", R"("heed_text_pairs": true,)"));
  EXPECT_TRUE(takes_pairs("bert-classify", R"("finetuning_task": "MRPC",)"));
  EXPECT_FALSE(takes_pairs("bert-classify", R"("finetuning_task": "sst2",)"));
  EXPECT_FALSE(takes_pairs("bert-mlm", R"("heed_text_pairs": true,)"));
}

TEST(Model, EndsWhereItsConfigSaysIfNoOtherFileDoes) {
  ModelConfig config = tiny_config(Family::decoder_only);
  config.eos_id = 7;
  const std::string saved = testing::TempDir() + "/heed_model_end";
  std::filesystem::remove_all(saved);
  Network(hf_equivalent(config), Parameters(config)).save(saved);
  std::filesystem::remove(saved + "/generation_config.json");
  ModelFiles files;
  files.config = read(saved + "/config.json");
  const std::string weights = read(saved + "/model.safetensors");
  for (const char c : weights) files.tensors.push_back(static_cast<std::byte>(c));
  ASSERT_NE(files.config.find(R"("model_type": "heed")"), std::string::npos) << files.config;
  EXPECT_EQ(Model::load(saved).search_options().end_ids, std::vector<int32_t>{7});
  EXPECT_EQ(Model::from_memory(files).search_options().end_ids, std::vector<int32_t>{7});
  std::filesystem::remove_all(saved);
}

TEST(Model, WhatIsNotThereIsNotFound) {
  try {
    Model::load("no/such/folder");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
  }
}

}  // namespace
}  // namespace heed
