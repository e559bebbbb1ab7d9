#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "heed/metrics.h"
#include "heed/tasks.h"
#include "heed/train.h"
#include "heed/translate.h"
#include "infer/tasks/task_testing.h"

namespace heed {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// Random weights answer no sense; what counts is that the validator says what the tasks say.
class ValidatorTest : public TaskTest {
 protected:
  static ModelConfig two_stacks() {
    ModelConfig config = tiny(Head::language_model);
    config.family = Family::encoder_decoder;
    config.token_types = 0, config.embedding_norm = false, config.decoder_layers = 2;
    config.decoder_start_id = 0, config.eos_id = 3;
    return config;
  }

  ValidationScores ask(const std::string& objective, const std::vector<ValidationExample>& examples,
                       int samples = 2) const {
    return decoding_validator()({.model = folder_,
                                 .objective = objective,
                                 .examples = examples,
                                 .tokenize = "none",
                                 .samples = samples,
                                 .threads = 1});
  }
};

TEST_F(ValidatorTest, TranslatesAsTheModelFolderSays) {
  write("generation_config.json", R"({"num_beams": 3, "length_penalty": 0.5,
      "max_new_tokens": 8, "eos_token_id": 3})");
  const Model model = make(two_stacks());
  const std::vector<std::string> sources{"the cat sat on the mat", "", "she lives in new york ."};
  std::vector<std::string> outputs;
  Translator translator(model, {.threads = 1});
  for (const std::string& source : sources) {
    outputs.push_back(translator.translate(source, {.search = model.search_options()}).text);
  }
  ASSERT_NE(outputs[0], "");
  // Half of what the first one really is, and a space that no tool counts.
  const std::string half = outputs[0].substr(0, outputs[0].size() / 2);
  const std::vector<ValidationExample> examples{{.source = sources[0], .target = half + " "},
                                                {.source = sources[1], .target = "nothing"},
                                                {.source = sources[2], .target = outputs[2]}};
  const ValidationScores scores = ask("translation", examples);
  const References references{{half}, {"nothing"}, {outputs[2]}};
  EXPECT_EQ(scores.metrics.at("bleu"), bleu(outputs, references, {.tokenize = "none"}).score);
  EXPECT_GT(scores.metrics.at("bleu"), 0);
  EXPECT_EQ(scores.metrics.at("chrf"), chrf(outputs, references).score);
  EXPECT_EQ(scores.metrics.at("exact"), 1.0 / 3);
  ASSERT_THAT(scores.samples, SizeIs(2));
  EXPECT_THAT(scores.samples[0], HasSubstr("output: " + outputs[0] + "\n"));
}

TEST_F(ValidatorTest, StopsWhenAsked) {
  const std::vector<ValidationExample> examples(
      3, {.source = "the cat", .target = "x", .words = {"the", "cat"}, .tags = {"O", "O"}});
  const std::atomic<bool> stop = true;
  const auto expect_stop = [&](const std::string& objective, const ModelConfig& config) {
    SCOPED_TRACE(objective);
    make(config);
    expect_error(ErrorCode::cancelled, "cancelled", [&] {
      decoding_validator()({.model = folder_,
                            .objective = objective,
                            .examples = examples,
                            .threads = 1,
                            .stop = &stop});
    });
  };
  expect_stop("translation", two_stacks());
  expect_stop("parsing", two_stacks());
  expect_stop("classification", tiny(Head::classifier, 2));
  expect_stop("regression", tiny(Head::regression, 1));
  expect_stop("tagging", tiny(Head::token_classifier, 2));
}

TEST_F(ValidatorTest, StopsWhileItDecodes) {
  write("generation_config.json", R"({"num_beams": 3, "max_new_tokens": 40, "eos_token_id": 3})");
  make(two_stacks());
  const std::vector<ValidationExample> examples(3000, {.source = "the cat sat", .target = "x"});
  std::atomic<bool> stop = false;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop = true;
  });
  expect_error(ErrorCode::cancelled, "cancelled", [&] {
    decoding_validator()({.model = folder_,
                          .objective = "translation",
                          .examples = examples,
                          .threads = 1,
                          .stop = &stop});
  });
  later.join();
}

TEST_F(ValidatorTest, ComparesLabelsByName) {
  const Model model = make(tiny(Head::classifier, 2));
  const std::vector<TaskInput> inputs = many_texts(9);
  std::vector<ValidationExample> examples;
  int correct = 0;
  for (const Classified& result : Classifier(model, {.threads = 1}).classify(inputs)) {
    const std::string truth = examples.size() % 3 == 0 ? "LABEL_0" : "LABEL_1";
    correct += result.name == truth;
    examples.push_back({.source = inputs[examples.size()].text, .target = truth});
  }
  const ValidationScores scores = ask("classification", examples);
  EXPECT_DOUBLE_EQ(scores.metrics.at("accuracy"), correct / 9.0);
  EXPECT_TRUE(scores.metrics.contains("f1"));
  EXPECT_TRUE(scores.metrics.contains("matthews"));
}

TEST_F(ValidatorTest, CorrelatesScores) {
  const Model model = make(tiny(Head::regression, 1));
  const std::vector<TaskInput> inputs = many_texts(9);
  std::vector<ValidationExample> examples;
  for (const Classified& result : Classifier(model, {.threads = 1}).classify(inputs)) {
    examples.push_back({.source = inputs[examples.size()].text,
                        .target = std::to_string(200 - 300 * result.logits[0])});
  }
  const ValidationScores scores = ask("regression", examples);
  EXPECT_NEAR(scores.metrics.at("pearson"), -1, 1e-3);
  EXPECT_NEAR(scores.metrics.at("spearman"), -1, 1e-3);
  // Where one side never varies there is no correlation, and no NaN either.
  for (ValidationExample& e : examples) e.target = "5";
  EXPECT_EQ(ask("regression", examples).metrics.at("pearson"), 0);
}

TEST_F(ValidatorTest, TagsWordsThatHaveASpaceInside) {
  const Model model = make(tiny(Head::token_classifier, 3));
  const Tagged tagged = Tagger(model, {.threads = 1}).tag({{.text = "she lives in new york ."}})[0];
  ASSERT_THAT(tagged.words, SizeIs(6));
  ValidationExample example{.words = {"she", "lives", "in", "new york", "."}};
  for (const size_t w : {0, 1, 2, 3, 5}) example.tags.push_back(tagged.words[w].name);
  ValidationScores scores = ask("tagging", {example});
  EXPECT_EQ(scores.metrics.at("accuracy"), 1);
  EXPECT_FALSE(scores.metrics.contains("f1"));  // LABEL_0 marks no span
  example.tags = {"O", "O", "O", "B-LOC", "O"};
  scores = ask("tagging", {example});
  EXPECT_EQ(scores.metrics.at("accuracy"), 0);
  EXPECT_EQ(scores.metrics.at("f1"), 0);
}

TEST_F(ValidatorTest, ScoresBracketsOverTheWords) {
  write("generation_config.json", R"({"max_new_tokens": 8, "eos_token_id": 3})");
  const Model model = make(two_stacks());
  ValidationExample example{
      .source = "the cat sat", .target = "(S (NP XX XX )NP XX )S", .words = {"the", "cat", "sat"}};
  const Parsed parsed = Parser(model, {.threads = 1}).parse({example.source})[0];
  const std::string gold = "(S (NP (XX the) (XX cat)) (XX sat))";
  EXPECT_EQ(ask("parsing", {example}).metrics.at("f1"), brackets({gold}, {parsed.tree}).all.f1);
  example.target = parsed.linear;
  EXPECT_THAT(ask("parsing", {example}).samples[0], HasSubstr("output: " + parsed.tree));
}

TEST_F(ValidatorTest, GoesOnWithTheBeginningsOfTexts) {
  ModelConfig config = tiny(Head::language_model);
  config.family = Family::decoder_only;
  config.token_types = 0, config.embedding_norm = false;
  config.decoder_layers = config.encoder_layers, config.eos_id = 3;
  make(config);
  const ValidationScores scores =
      ask("causal_lm", {{.source = ""}, {.source = "the cat"}, {.source = "a dog"}}, 1);
  EXPECT_TRUE(scores.metrics.empty());
  ASSERT_THAT(scores.samples, SizeIs(1));
  EXPECT_TRUE(scores.samples[0].starts_with("the cat|"));
}

TEST_F(ValidatorTest, HasNothingToSayAboutOtherObjectives) {
  const ValidationScores scores = ask("masked_lm", {{.source = "the cat"}});  // no model is there
  EXPECT_TRUE(scores.metrics.empty());
  EXPECT_TRUE(scores.samples.empty());
}

}  // namespace
}  // namespace heed
