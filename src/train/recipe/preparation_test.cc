#include "train/recipe/preparation.h"

#include "base/files/file_testing.h"
#include "train/run/task_testing.h"

namespace heed {
namespace {

using PreparationTest = FolderTest;
using testing::HasSubstr;

Recipe recipe_with(const std::string& preset, const std::vector<std::string>& sets) {
  return parse_recipe(
      "[model]\npreset = \"" + preset + "\"\n[data]\ntrain = \"x\"\n[train]\nsteps = 1\n", "r.toml",
      sets);
}

TEST(FittedConfig, FollowsTokenizerAndObjective) {
  const TokenizerPtr bytes = make_tokenizer("byte");
  const ModelConfig lm =
      fitted_config(recipe_with("gpt2", {"objective.kind=causal_lm"}), *bytes, 0);
  EXPECT_EQ(lm.vocabulary, bytes->vocabulary_size());
  EXPECT_EQ(lm.eos_id, bytes->special_ids().end);
  EXPECT_EQ(lm.head, Head::language_model);
  const ModelConfig given = fitted_config(
      recipe_with("gpt2", {"objective.kind=causal_lm", "model.vocabulary=512", "model.eos_id=7"}),
      *bytes, 0);
  EXPECT_EQ(given.vocabulary, 512);
  EXPECT_EQ(given.eos_id, 7);
  const ModelConfig two = fitted_config(recipe_with("transformer-tiny", {}), *bytes, 0);
  EXPECT_EQ(two.decoder_start_id, bytes->special_ids().pad);
  expect_error(ErrorCode::invalid_argument, "pieces", [&] {
    fitted_config(recipe_with("gpt2", {"objective.kind=causal_lm", "model.vocabulary=5"}), *bytes,
                  0);
  });
  expect_error(ErrorCode::invalid_argument, "is for decoder_only models", [&] {
    fitted_config(recipe_with("bert-tiny", {"objective.kind=causal_lm"}), *bytes, 0);
  });
  expect_error(ErrorCode::invalid_argument, "encoder_only and decoder_only", [&] {
    fitted_config(recipe_with("t5-small", {"objective.kind=tagging"}), *bytes, 3);
  });
}

TEST(FittedConfig, TakesTheArchitecturesOwnClassifier) {
  const TokenizerPtr bytes = make_tokenizer("byte");
  const auto config = [&](const char* preset, const char* kind) {
    return fitted_config(recipe_with(preset, {std::string("objective.kind=") + kind}), *bytes, 5);
  };
  const ModelConfig bert = config("bert-tiny", "classification");
  EXPECT_EQ(bert.head, Head::classifier);
  EXPECT_EQ(bert.labels, 5);
  EXPECT_TRUE(bert.pooler);
  EXPECT_EQ(hf_equivalent(bert).architecture, "BertForSequenceClassification");
  EXPECT_EQ(hf_equivalent(config("roberta-base", "classification")).architecture,
            "RobertaForSequenceClassification");
  EXPECT_EQ(hf_equivalent(config("distilbert", "classification")).architecture,
            "DistilBertForSequenceClassification");
  EXPECT_EQ(hf_equivalent(config("bert-tiny", "tagging")).architecture,
            "BertForTokenClassification");
  EXPECT_EQ(config("bert-tiny", "regression").labels, 1);
  const ModelConfig pairs = fitted_config(
      recipe_with("bert-tiny",
                  {"objective.kind=masked_lm", "objective.masked_input=sentence_pairs"}),
      *bytes, 0);
  EXPECT_TRUE(pairs.pooler);
  EXPECT_EQ(hf_equivalent(pairs).model_type, "bert");
}

TEST(NetworkFrom, KeepsWhatIsTheSameAndBeginsTheRest) {
  const ModelConfig before = toy_config(Family::decoder_only);
  const Network from(before, 1);
  ModelConfig config = before;
  config.head = Head::classifier, config.labels = 3, config.pooling = Pooling::last;
  std::vector<std::string> fresh;
  const Network network = network_from(config, &from, 2, fresh);
  EXPECT_EQ(fresh, (std::vector<std::string>{"head.output.weight", "head.output.bias"}));
  EXPECT_TRUE(std::ranges::equal(network.parameters().values("embedding.tokens"),
                                 from.parameters().values("embedding.tokens")));
  config.ffn = 48;
  expect_error(ErrorCode::invalid_argument, "weights differ",
               [&] { network_from(config, &from, 2, fresh); });
  // One weight is named with both of its shapes.
  config = before, config.max_positions = before.max_positions / 2;
  expect_error(ErrorCode::invalid_argument,
               "[model] must keep the sizes of model.from: embedding.positions would be [",
               [&] { network_from(config, &from, 2, fresh); });
}

class PreparationFilesTest : public FolderTest {
 protected:
  std::string generation(const Recipe& recipe, Family family) {
    std::filesystem::remove(path("generation_config.json"));
    write_generation_config(folder_, recipe, toy_config(family));
    return std::filesystem::exists(path("generation_config.json"))
               ? read_text(path("generation_config.json"))
               : "";
  }
};

TEST_F(PreparationFilesTest, TellLaterToolsHowValidationDecoded) {
  Recipe recipe;
  recipe.validate.beam = 3;
  EXPECT_THAT(generation(recipe, Family::encoder_decoder), HasSubstr("\"num_beams\": 3"));
  EXPECT_EQ(generation(recipe, Family::encoder_only), "");
  EXPECT_EQ(generation(recipe, Family::decoder_only), "");  // it has no ids to tell
  // A model's own file stays as it is, but for what the recipe asks.
  std::filesystem::create_directory(path("from"));
  write("from/generation_config.json", R"({"num_beams": 7, "bad_words_ids": [[1]]})");
  recipe.model.from = path("from");
  const std::string kept = generation(recipe, Family::encoder_decoder);
  EXPECT_THAT(kept, HasSubstr("\"num_beams\": 7"));
  EXPECT_THAT(kept, HasSubstr("bad_words_ids"));
  recipe.origins["validate.beam"] = "--set";
  EXPECT_THAT(generation(recipe, Family::encoder_decoder), HasSubstr("\"num_beams\": 3"));
}

TEST_F(PreparationFilesTest, TellWhatTheModelWasTrainedFor) {
  Network(toy_config(Family::encoder_decoder), 1).save(folder_);
  write_task(folder_, Objective::parsing, {});
  std::string config = read_text(path("config.json"));
  EXPECT_THAT(config, HasSubstr("\"finetuning_task\": \"parsing\""));
  EXPECT_THAT(config, testing::Not(HasSubstr("id2label")));
  write_task(folder_, Objective::classification, {"bad", "good"});
  config = read_text(path("config.json"));
  EXPECT_THAT(config, HasSubstr("\"finetuning_task\": \"classification\""));
  EXPECT_THAT(config, HasSubstr("\"1\": \"good\""));
  EXPECT_THAT(config, testing::Not(HasSubstr("heed_text_pairs")));
  write_task(folder_, Objective::classification, {"bad", "good"}, /*text_pairs=*/true);
  EXPECT_THAT(read_text(path("config.json")), HasSubstr("\"heed_text_pairs\": true"));
  EXPECT_EQ(Network::load(folder_).config().family, Family::encoder_decoder);
}

TEST(HasTextPairs, ForLabelsOfTwoTexts) {
  const auto of = [](const char* text) { return has_text_pairs(parse_recipe(text, "a.toml")); };
  const std::string start = "[model]\npreset = \"bert-tiny\"\n[train]\nsteps = 1\n";
  const std::string one = start + "[data]\ntrain = [\"a.csv\"]\nfirst_column = \"a\"\n";
  const std::string label = "[objective]\nkind = \"regression\"\n";
  EXPECT_FALSE(of((one + label).c_str()));
  EXPECT_TRUE(of((one + "second_column = \"b\"\n" + label).c_str()));
}

TEST_F(PreparationFilesTest, GiveValidationItsExamplesAsText) {
  Recipe recipe;
  CorpusOptions corpus;
  corpus.files = {write("a", "one\n\nthree\n"), write("b", "eins\nzwei\ndrei\n")};
  std::vector<ValidationExample> examples = read_validation_examples(corpus, recipe);
  ASSERT_EQ(examples.size(), 3u);  // an empty source counts, as it does for other tools
  EXPECT_EQ(examples[2].source, "three");
  EXPECT_EQ(examples[2].target, "drei");
  recipe.validate.max_sentences = 1;
  EXPECT_EQ(read_validation_examples(corpus, recipe).size(), 1u);
  recipe.validate.max_sentences = 0;

  recipe.objective.options.kind = Objective::classification;
  corpus.files = {write("pairs.tsv", "one\ttwo\tyes\n\nthree\tfour\tno\n")};
  corpus.second_column = "2", corpus.label_column = "3";
  examples = read_validation_examples(corpus, recipe);
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[1].second, "four");
  EXPECT_EQ(examples[1].target, "no");

  recipe.objective.options.kind = Objective::tagging;
  corpus.second_column = corpus.label_column = "";
  corpus.files = {write("words.conll", "New B-LOC\nYork I-LOC\n\nHi O\n")};
  examples = read_validation_examples(corpus, recipe);
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].words, (std::vector<std::string>{"New", "York"}));
  EXPECT_EQ(examples[0].tags, (std::vector<std::string>{"B-LOC", "I-LOC"}));

  recipe.objective.options.kind = Objective::parsing;
  corpus.files = {write("trees.mrg", "(S (NP (NNP John)) (VP (VBZ has)))\n")};
  examples = read_validation_examples(corpus, recipe);
  ASSERT_EQ(examples.size(), 1u);
  EXPECT_EQ(examples[0].words, (std::vector<std::string>{"John", "has"}));
  EXPECT_EQ(examples[0].target, "(S (NP XX )NP (VP XX )VP )S");
}

}  // namespace
}  // namespace heed
