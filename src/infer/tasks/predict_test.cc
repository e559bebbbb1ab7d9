#include "heed/tasks.h"

#include <atomic>
#include <cmath>
#include <thread>

#include "infer/tasks/task_testing.h"

namespace heed {
namespace {

class PredictTest : public TaskTest {
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
};

TEST_F(PredictTest, GivesTheProbabilitiesThatScoringDoes) {
  const Model model = make(decoder());
  const std::vector<int32_t> ids = {2, 5, 6, 7, 3};
  const Predicted predicted =
      Predictor(model, {.threads = 1}).predict({{.ids = ids}}, {.top = 40})[0];
  const Scored scored = Scorer(model, {.threads = 1}).score({{.ids = ids}})[0];
  EXPECT_EQ(predicted.ids, ids);
  ASSERT_EQ(predicted.token_scores.size(), 4U);
  ASSERT_EQ(predicted.next.size(), 5U);
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(predicted.token_scores[t], scored.token_scores[t]);
    double sum = 0;
    for (const Candidate& candidate : predicted.next[t]) {
      sum += candidate.probability;
      if (candidate.id == ids[t + 1]) {
        EXPECT_NEAR(std::log(candidate.probability), scored.token_scores[t], 1e-5);
      }
    }
    EXPECT_NEAR(sum, 1, 1e-5);  // of all 40 tokens
  }
}

TEST_F(PredictTest, OrdersCandidatesAndSpellsThem) {
  const Model model = make(decoder());
  const Predicted predicted =
      Predictor(model, {.threads = 1})
          .predict({{.text = "the cat"}}, {.top = 3, .everywhere = false})[0];
  ASSERT_EQ(predicted.next.size(), 1U);
  EXPECT_TRUE(predicted.token_scores.empty());
  const std::vector<Candidate>& best = predicted.next[0];
  ASSERT_EQ(best.size(), 3U);
  EXPECT_GE(best[0].probability, best[1].probability);
  EXPECT_GE(best[1].probability, best[2].probability);
  EXPECT_EQ(best[0].piece, model.tokenizer().piece(best[0].id));
}

TEST_F(PredictTest, SharpensAndFlattensWithTheTemperature) {
  const Predictor predictor(make(decoder()), {.threads = 1});
  const auto at = [&](double temperature) {
    return predictor
        .predict({{.text = "the cat"}},
                 {.top = 40, .everywhere = false, .temperature = temperature})[0]
        .next[0];
  };
  const std::vector<Candidate> plain = at(1), sharp = at(0.5);
  double sum = 0;
  for (const Candidate& candidate : plain) sum += std::pow(candidate.probability, 2);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(sharp[i].id, plain[i].id);
    EXPECT_NEAR(sharp[i].probability, std::pow(plain[i].probability, 2) / sum, 1e-5);
  }
  expect_error(ErrorCode::invalid_argument, "temperature", [&] { at(0); });
}

// A template may put an end after a text, and nothing would follow that.
TEST_F(PredictTest, GoesOnFromAPromptWithoutItsEnd) {
  write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer", "eos_token": "[SEP]"})");
  const Model model = make(decoder());
  ASSERT_EQ(model.tokenizer().encode_ids("the cat"), (std::vector<int32_t>{2, 5, 6, 3}));
  const Predicted predicted = Predictor(model, {.threads = 1}).predict({{.text = "the cat"}})[0];
  EXPECT_EQ(predicted.ids, (std::vector<int32_t>{2, 5, 6}));
}

TEST_F(PredictTest, PredictsATargetAfterItsStart) {
  const Model model = make(decoder(Family::encoder_decoder));
  const Predictor predictor(model, {.threads = 1});
  const Predicted start = predictor.predict({{.text = "the cat"}})[0];
  EXPECT_EQ(start.ids, std::vector<int32_t>{0});
  const Predicted further = predictor.predict({{.text = "the cat", .second = "sat"}})[0];
  EXPECT_EQ(further.ids, (std::vector<int32_t>{0, 7}));
  EXPECT_EQ(further.next[0][0].probability, start.next[0][0].probability);
}

TEST_F(PredictTest, KeepsTheEndOfWhatIsTooLong) {
  const Model model = make(decoder());  // 24 positions
  std::vector<int32_t> ids(30, 6);
  ids.back() = 9;
  const Predicted predicted = Predictor(model, {.threads = 1}).predict({{.ids = ids}})[0];
  EXPECT_TRUE(predicted.truncated);
  EXPECT_EQ(predicted.ids.size(), 24U);
  EXPECT_EQ(predicted.ids.back(), 9);
}

// A text is one batch, so it is asked within it too: after the first look, before its rows.
TEST_F(PredictTest, EndsWhenItIsCancelled) {
  const Predictor predictor(make(decoder()), {.threads = 1});
  for (const int glances : {0, 1, 2}) {
    int left = glances;
    expect_error(ErrorCode::cancelled, "cancelled", [&] {
      predictor.predict({{.text = "the cat sat"}}, {}, [&] { return left-- <= 0; });
    });
  }
}

// Of several threads: what asks may be a thing of the caller's thread alone, such as Python's.
TEST_F(PredictTest, AsksWhetherToGoOnOnTheCallingThread) {
  const Predictor predictor(make(decoder()), {.threads = 4});
  const std::vector<TaskInput> inputs(20, {.ids = std::vector<int32_t>(24, 6)});
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> elsewhere = 0, glances = 0;
  predictor.predict(inputs, {}, [&] {
    ++glances;
    if (std::this_thread::get_id() != caller) ++elsewhere;
    return false;
  });
  EXPECT_EQ(elsewhere, 0);
  EXPECT_GT(glances, 5);  // once for the batch, before each of its tiles, and to spell
}

}  // namespace
}  // namespace heed
