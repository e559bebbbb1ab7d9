#include <cmath>

#include "infer/tasks/task_testing.h"
#include "model/packed_batch.h"

namespace heed {
namespace {

class ScoreTest : public TaskTest {
 protected:
  static ModelConfig decoder(Family family = Family::decoder_only) {
    ModelConfig config = tiny(Head::language_model);
    config.family = family;
    config.token_types = 0, config.pooler = false, config.embedding_norm = false;
    config.decoder_layers = 2;
    if (family == Family::decoder_only) config.encoder_layers = 0;
    config.decoder_start_id = 0;
    return config;
  }

  // log p of every id but the first, from the logits of one run over all of them.
  static std::vector<double> reference(const Model& model, const std::vector<int32_t>& ids) {
    const PackedBatch packed({ids});
    ThreadPool pool(1);
    Arena arena(64 << 20);
    Ctx ctx{pool, arena};
    const Transformer& t = model.network().transformer();
    const Var logits = t.logits(ctx, t.hidden(ctx, {.source = packed.batch()}));
    std::vector<double> scores;
    for (size_t i = 1; i < ids.size(); ++i) {
      const float* row = logits.value.row(static_cast<int64_t>(i) - 1);
      double sum = 0;
      for (int64_t v = 0; v < logits.cols(); ++v) sum += std::exp(static_cast<double>(row[v]));
      scores.push_back(row[ids[i]] - std::log(sum));
    }
    return scores;
  }
};

TEST_F(ScoreTest, IsTheSumOfTheTokensLogProbabilities) {
  const Model model = make(decoder());
  const Scored scored = Scorer(model, {.threads = 1}).score({{.text = "the cat sat"}})[0];
  EXPECT_EQ(scored.ids, (std::vector<int32_t>{5, 6, 7, 3}));  // after [CLS]
  EXPECT_EQ(scored.offsets[1], (TextSpan{4, 7}));
  const std::vector<double> expected = reference(model, {2, 5, 6, 7, 3});
  double sum = 0;
  for (size_t t = 0; t < expected.size(); ++t) {
    EXPECT_NEAR(scored.token_scores[t], expected[t], 1e-5);
    sum += expected[t];
  }
  EXPECT_NEAR(scored.log_probability, sum, 1e-4);
  EXPECT_NEAR(scored.perplexity(), std::exp(-sum / 4), 1e-3);
}

TEST_F(ScoreTest, TheEndCountsUnlessItIsLeftOut) {
  for (const Family family : {Family::decoder_only, Family::encoder_decoder}) {
    const Scorer scorer(make(decoder(family)), {.threads = 1});
    const std::vector<TaskInput> inputs{{.text = "the cat sat",
                                         .second = family == Family::encoder_decoder
                                                       ? std::optional("the cat sat")
                                                       : std::nullopt}};
    const Scored whole = scorer.score(inputs)[0], open = scorer.score(inputs, {.end = false})[0];
    EXPECT_EQ(whole.ids.back(), 3);  // [SEP]
    EXPECT_EQ(open.ids, std::vector(whole.ids.begin(), whole.ids.end() - 1));
    EXPECT_NEAR(open.log_probability, whole.log_probability - whole.token_scores.back(), 1e-4);
  }
}

TEST_F(ScoreTest, ScoresALongTextInWindows) {
  const Model model = make(decoder());
  const Scorer scorer(model, {.threads = 1});
  std::vector<int32_t> ids;
  for (int i = 0; i < 61; ++i) ids.push_back(5 + i * i % 17);
  const Scored scored = scorer.score({{.ids = ids}}, {.window = 10, .stride = 4})[0];
  ASSERT_EQ(scored.token_scores.size(), ids.size() - 1);
  // Rows of a window predict the ids after them; window w reads ids [4w, 4w + 10).
  for (size_t t = 0; t < scored.token_scores.size(); ++t) {
    const size_t window = t < 10 ? 0 : (t - 10) / 4 + 1;
    const size_t begin = 4 * window, end = std::min(begin + 11, ids.size());
    const std::vector<double> expected = reference(
        model,
        {ids.begin() + static_cast<ptrdiff_t>(begin), ids.begin() + static_cast<ptrdiff_t>(end)});
    EXPECT_NEAR(scored.token_scores[t], expected.at(t - begin), 1e-5) << t;
  }
  // 24 positions are all that the model has.
  EXPECT_EQ(scorer.score({{.ids = ids}})[0].token_scores.size(), ids.size() - 1);
  expect_error(ErrorCode::invalid_argument, "stride of 11 is longer than the window of 10",
               [&] { scorer.score({{.ids = ids}}, {.window = 10, .stride = 11}); });
}

TEST_F(ScoreTest, IsTheSameAloneAndAmongOthers) {
  const Model model = make(decoder());
  const std::vector<TaskInput> inputs = many_texts(60);
  const auto together = Scorer(model, {.threads = 2, .batch_tokens = 100}).score(inputs);
  const Scorer alone(model, {.threads = 1});
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(together[i].token_scores, alone.score({inputs[i]})[0].token_scores) << i;
  }
}

TEST_F(ScoreTest, ScoresATargetGivenItsSource) {
  const Scorer scorer(make(decoder(Family::encoder_decoder)), {.threads = 1});
  EXPECT_TRUE(scorer.has_source());
  const auto scored = scorer.score({{.text = "the cat", .second = "a dog"},
                                    {.ids = {2, 5, 6, 3}, .second_ids = {2, 20, 10, 3}},
                                    {.text = "on the mat", .second = "a dog"}});
  EXPECT_EQ(scored[0].ids, (std::vector<int32_t>{2, 20, 10, 3}));
  EXPECT_EQ(scored[0].token_scores, scored[1].token_scores);
  EXPECT_NE(scored[0].token_scores, scored[2].token_scores);
  expect_error(ErrorCode::invalid_argument, "scores a target",
               [&] { scorer.score({{.text = "the cat"}}); });
}

TEST_F(ScoreTest, AnswersTooLittleTextWithNoTokens) {
  const Scored scored = Scorer(make(decoder()), {.threads = 1}).score({{.ids = {5}}})[0];
  EXPECT_TRUE(scored.ids.empty());
  EXPECT_EQ(scored.log_probability, 0);
  EXPECT_EQ(scored.perplexity(), 1);
}

TEST_F(ScoreTest, RefusesOtherModels) {
  const Model model = make(tiny(Head::masked_lm));
  expect_error(ErrorCode::unsupported, "language_model", [&] { Scorer scorer(model); });
}

}  // namespace
}  // namespace heed
