#include <numeric>

#include "infer/tasks/task_testing.h"

namespace heed {
namespace {

class ClassifyTest : public TaskTest {};

TEST_F(ClassifyTest, NamesTheLikeliestLabel) {
  const Classifier classifier(make(tiny(Head::classifier, 3)), {.threads = 1});
  EXPECT_FALSE(classifier.is_regression());
  for (const Classified& result : classifier.classify(many_texts(20))) {
    ASSERT_EQ(result.probabilities.size(), size_t{3});
    EXPECT_NEAR(std::accumulate(result.probabilities.begin(), result.probabilities.end(), 0.0), 1,
                1e-12);
    const auto label = static_cast<size_t>(result.label);
    for (size_t l = 0; l < 3; ++l) EXPECT_GE(result.logits[label], result.logits[l]);
    EXPECT_EQ(result.name, classifier.labels()[label]);
  }
}

TEST_F(ClassifyTest, IsTheSameAloneAndAmongOthers) {
  const Model model = make(tiny(Head::classifier, 3));
  const std::vector<TaskInput> inputs = many_texts(60);
  const auto together = Classifier(model, {.threads = 2}).classify(inputs);
  const auto in_batches = Classifier(model, {.threads = 1, .batch_tokens = 50}).classify(inputs);
  const Classifier alone(model, {.threads = 1});
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(together[i].logits, in_batches[i].logits) << i;
    EXPECT_EQ(together[i].logits, alone.classify({inputs[i]})[0].logits) << i;
  }
}

TEST_F(ClassifyTest, ReadsPairsWithTheirTypes) {
  const Classifier classifier(make(tiny(Head::classifier, 3)), {.threads = 1});
  const auto results =
      classifier.classify({{.text = "the cat", .second = "a dog"},
                           {.ids = {2, 5, 6, 3, 20, 10, 3}, .types = {0, 0, 0, 0, 1, 1, 1}},
                           {.ids = {2, 5, 6, 3, 20, 10, 3}}});
  EXPECT_EQ(results[0].logits, results[1].logits);
  EXPECT_NE(results[0].logits, results[2].logits);
}

TEST_F(ClassifyTest, CutsTheLongerTextOfAPairAndSaysSo) {
  const Classifier classifier(make(tiny(Head::classifier, 3)), {.threads = 1, .max_tokens = 7});
  const auto results =
      classifier.classify({{.text = "the cat sat on the mat", .second = "a dog"},
                           {.ids = {2, 5, 6, 3, 20, 10, 3}, .types = {0, 0, 0, 0, 1, 1, 1}}});
  EXPECT_TRUE(results[0].truncated);
  EXPECT_EQ(results[0].tokens, 7);
  EXPECT_EQ(results[0].logits, results[1].logits);
  EXPECT_FALSE(results[1].truncated);
}

TEST_F(ClassifyTest, GivesScoresOfRegression) {
  const Classifier classifier(make(tiny(Head::regression, 1)), {.threads = 1});
  EXPECT_TRUE(classifier.is_regression());
  const Classified result = classifier.classify({{.text = "the cat"}})[0];
  EXPECT_EQ(result.logits.size(), size_t{1});
  EXPECT_EQ(result.label, -1);
  EXPECT_TRUE(result.probabilities.empty());
}

TEST_F(ClassifyTest, RefusesWhatItCannotDo) {
  const Model masked = make(tiny(Head::masked_lm));
  expect_error(ErrorCode::unsupported, "classifier or regression head; this one is encoder_only",
               [&] { Classifier classifier(masked); });
  const Model model = make(tiny(Head::classifier, 2));
  const Classifier classifier(model);
  expect_error(ErrorCode::invalid_argument, "2 token types for 3 ids", [&] {
    classifier.classify({{.ids = {2, 5, 3}, .types = {0, 0}}});
  });
  expect_error(ErrorCode::invalid_argument, "99", [&] {
    classifier.classify({{.ids = {2, 99, 3}}});
  });
  const Classifier wordless(Model(model.network_pointer(), nullptr));
  expect_error(ErrorCode::not_found, "tokenizer",
               [&] { wordless.classify({{.text = "the cat"}}); });
}

}  // namespace
}  // namespace heed
