#include "heed/attend.h"

#include "infer/tasks/task_testing.h"

namespace heed {
namespace {

class AttendTest : public TaskTest {
 protected:
  static void expect_distributions(const AttentionView& view) {
    for (const AttentionLayer& layer : view.layers) {
      EXPECT_EQ(layer.queries, std::ssize(view.queries(layer.kind)));
      EXPECT_EQ(layer.keys, std::ssize(view.keys(layer.kind)));
      ASSERT_EQ(std::ssize(layer.probabilities), layer.heads * layer.queries * layer.keys);
      for (int h = 0; h < layer.heads; ++h) {
        for (int64_t q = 0; q < layer.queries; ++q) {
          double sum = 0;
          for (int64_t k = 0; k < layer.keys; ++k) {
            sum += layer.at(h, q, k);
            if (layer.kind == AttentionKind::decoder && k > q) {
              EXPECT_EQ(layer.at(h, q, k), 0);
            }
          }
          EXPECT_NEAR(sum, 1, 1e-5);
        }
      }
    }
  }

  static ModelConfig two_sided() {
    ModelConfig config = tiny(Head::language_model);
    config.family = Family::encoder_decoder;
    config.token_types = 0, config.embedding_norm = false, config.decoder_layers = 3;
    config.decoder_start_id = 0, config.eos_id = 3;
    return config;
  }
  // The same without a table of positions that would end a text.
  static ModelConfig unlimited() {
    ModelConfig config = two_sided();
    config.position = Position::rope;
    return config;
  }
};

std::vector<std::string> texts_of(const std::vector<AttentionToken>& tokens) {
  std::vector<std::string> texts;
  for (const AttentionToken& token : tokens) texts.push_back(token.text);
  return texts;
}

using Texts = std::vector<std::string>;

TEST_F(AttendTest, ShowsEveryLayerAndHeadOfAnEncoder) {
  const AttentionView view = attend(make(tiny(Head::none)), {.text = "the dogs"}, {.threads = 1});
  EXPECT_EQ(texts_of(view.source).size(), size_t{5});
  EXPECT_EQ(view.source[0].text, "[CLS]");
  EXPECT_EQ(view.source[1].text, "the");
  EXPECT_TRUE(view.target.empty());
  ASSERT_EQ(view.layers.size(), size_t{2});
  EXPECT_EQ(view.layers[1].layer, 1);
  EXPECT_EQ(view.layers[1].heads, 2);
  expect_distributions(view);
}

TEST_F(AttendTest, ShowsADecoderThatLooksBack) {
  ModelConfig config = tiny(Head::language_model);
  config.family = Family::decoder_only;
  config.token_types = 0, config.embedding_norm = false;
  config.encoder_layers = 0, config.decoder_layers = 2;
  const AttentionView view = attend(make(config), {.text = "the cat sat"}, {.threads = 1});
  EXPECT_TRUE(view.source.empty());
  EXPECT_EQ(view.target.size(), size_t{5});
  ASSERT_EQ(view.layers.size(), size_t{2});
  EXPECT_EQ(view.layers[0].kind, AttentionKind::decoder);
  expect_distributions(view);
}

TEST_F(AttendTest, ShowsSourceAndTarget) {
  const Model model = make(two_sided());
  const AttentionView view =
      attend(model, {.text = "the cat", .second = "a dog ."}, {.threads = 1});
  EXPECT_EQ(view.source.size(), size_t{4});
  EXPECT_EQ(texts_of(view.target), (Texts{"[PAD]", "[CLS]", "a", "dog", "."}));
  Texts kinds;
  for (const AttentionLayer& layer : view.layers) {
    kinds.push_back(std::string(name_of(layer.kind)) + std::to_string(layer.layer));
  }
  EXPECT_EQ(kinds, (Texts{"encoder0", "encoder1", "decoder0", "decoder1", "decoder2", "cross0",
                          "cross1", "cross2"}));
  expect_distributions(view);
}

TEST_F(AttendTest, TranslatesWhatHasNoTarget) {
  const AttentionView view = attend(make(two_sided()), {.text = "the cat"}, {.threads = 1});
  EXPECT_GE(view.target.size(), size_t{1});
  EXPECT_EQ(view.target[0].text, "[PAD]");
  expect_distributions(view);
}

std::vector<int32_t> ids_of(const std::vector<AttentionToken>& tokens) {
  std::vector<int32_t> ids;
  for (const AttentionToken& token : tokens) ids.push_back(token.id);
  return ids;
}

// Its maps would be of a translation of something else.
TEST_F(AttendTest, TranslatesOnlyWhatItShowsOfTheSource) {
  const Model model = make(two_sided());
  const TaskInput whole{.text = "the cat sat on the mat in new york . she is fast"};
  const TaskOptions options{.threads = 1, .max_tokens = 6};
  const AttentionView view = attend(model, whole, options);
  ASSERT_EQ(view.source.size(), size_t{6});
  EXPECT_EQ(ids_of(view.target),
            ids_of(attend(model, {.ids = ids_of(view.source)}, options).target));
}

// Anything longer would take the model long, and what it likes here does not even fit in memory.
TEST_F(AttendTest, WritesNoMoreThanItShows) {
  write("generation_config.json",
        R"({"max_new_tokens": 1000000000, "min_new_tokens": 1000000000, "eos_token_id": 3})");
  const AttentionView view =
      attend(make(unlimited()), {.text = "the cat"}, {.threads = 1, .max_tokens = 5});
  EXPECT_EQ(view.target.size(), size_t{5});
  EXPECT_TRUE(view.truncated);
  EXPECT_FALSE(view.target_ends);
}

TEST_F(AttendTest, KnowsWhetherTheTargetEnds) {
  const Model model = make(two_sided());
  const TaskInput pair{.text = "the cat", .second = "a dog ."};
  EXPECT_TRUE(attend(model, pair, {.threads = 1}).target_ends);
  EXPECT_FALSE(attend(model, pair, {.threads = 1, .max_tokens = 4}).target_ends);
  const TaskInput longer{.text = "the cat sat on the mat", .second = "a"};
  const AttentionView cut = attend(model, longer, {.threads = 1, .max_tokens = 4});
  EXPECT_TRUE(cut.truncated);  // but only the source was
  EXPECT_TRUE(cut.target_ends);
}

TEST_F(AttendTest, SaysWhatWasCut) {
  const AttentionView view = attend(make(tiny(Head::none)), {.text = "the cat sat on the mat"},
                                    {.threads = 1, .max_tokens = 4});
  EXPECT_TRUE(view.truncated);
  EXPECT_EQ(view.source.size(), size_t{4});
}

int64_t weights_of(const AttentionView& view) {
  int64_t weights = 0;
  for (const AttentionLayer& layer : view.layers) weights += std::ssize(layer.probabilities);
  return weights;
}

TEST_F(AttendTest, CutsToTheWeightsThatFit) {
  // Two layers of two heads: four maps.
  const AttentionView one = attend(make(tiny(Head::none)), {.text = "the cat sat on the mat"},
                                   {.threads = 1}, {.max_weights = 4 * 25 + 3});
  EXPECT_TRUE(one.truncated);
  EXPECT_EQ(texts_of(one.source), (Texts{"[CLS]", "the", "cat", "sat", "[SEP]"}));
  EXPECT_EQ(weights_of(one), 4 * 25);

  const Model model = make(two_sided());
  const std::string words = "the cat sat on the mat in new york . she is fast";
  for (const std::string source : {"a", "the cat sat on the mat . she is fast"}) {
    for (const int64_t most : {100, 400, 1000, 100'000}) {
      const AttentionView two =
          attend(model, {.text = source, .second = words}, {.threads = 1}, {.max_weights = most});
      EXPECT_LE(weights_of(two), most) << source;
      EXPECT_EQ(two.truncated, most < 100'000) << source << most;
      EXPECT_GE(two.target.size(), size_t{1});
      expect_distributions(two);
    }
  }
}

TEST_F(AttendTest, EndsWhenItIsCancelled) {
  const auto expect_cancelled = [&](const Model& model, const TaskInput& input, int glances) {
    const auto is_cancelled = [&] { return glances-- <= 0; };
    expect_error(ErrorCode::cancelled, "cancelled", [&] {
      attend(model, input, {.threads = 1, .max_tokens = 2000}, {.is_cancelled = is_cancelled});
    });
  };
  const Model encoder = make(tiny(Head::none));
  expect_cancelled(encoder, {.text = "the cat"}, 0);
  expect_cancelled(encoder, {.text = "the cat"}, 1);  // just before it runs

  // While the model writes, which takes it a few glances: without them the second would be the
  // last.
  write("generation_config.json",
        R"({"max_new_tokens": 2000, "min_new_tokens": 2000, "eos_token_id": 3})");
  expect_cancelled(make(unlimited()), {.text = "the cat"}, 2);
}

}  // namespace
}  // namespace heed
