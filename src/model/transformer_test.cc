// Cases computed by hand. tests/matrix tests every combination of switches.
#include "model/transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heed/error.h"
#include "model/gradient_step.h"
#include "model/network.h"
#include "model/packed_batch.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

ModelConfig tiny(Family family) {
  ModelConfig c;
  c.family = family;
  c.head = family == Family::encoder_only ? Head::masked_lm : Head::language_model;
  c.vocabulary = 10, c.width = 8, c.heads = 2, c.ffn = 12, c.max_positions = 32;
  c.encoder_layers = family == Family::decoder_only ? 0 : 1;
  c.decoder_layers = family == Family::encoder_only ? 0 : 2;
  c.position = Position::none, c.norm_place = NormPlace::pre;
  c.embedding_scale = EmbeddingScale::none;
  c.dropout = c.embedding_dropout = 0;
  return c;
}

std::vector<float> numbers(ConstMat m) {
  std::vector<float> all;
  for (int64_t r = 0; r < m.rows; ++r) all.insert(all.end(), m.row(r), m.row(r) + m.cols);
  return all;
}

struct Workspace {
  ThreadPool pool{1};
  Arena arena{size_t{8} << 20};
  Ctx ctx{pool, arena};
};

std::vector<float> decoded(const Network& model, const Batch& batch) {
  Workspace run;
  return numbers(model.transformer().hidden(run.ctx, {.source = batch}).value);
}

// A model of nothing but what a test puts in: all weights 0, all norms 1.
Network silent(const ModelConfig& config) {
  Network model(config);
  for (const ParameterSpec& spec : model.parameters().specs()) {
    std::ranges::fill(model.parameters().values(spec.name), spec.name.ends_with("gamma") ? 1 : 0);
  }
  return model;
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::cancelled;  // none of those that are expected here
}

TEST(GlobalTokens, AreSortedIntoTheirSequences) {
  const PackedBatch packed({{1, 2, 3}, {4}, {5, 6}});
  const GlobalTokens global(packed.batch(), std::vector<int32_t>{4, 0, 2});
  EXPECT_THAT(global.flags, ElementsAre(1, 0, 1, 0, 1, 0));
  EXPECT_THAT(global.rows, ElementsAre(0, 2, 4));
  EXPECT_THAT(global.offsets, ElementsAre(0, 2, 2, 3));
}

TEST(GlobalTokens, MustBeInTheBatch) {
  const PackedBatch packed({{1, 2, 3}});
  for (const int32_t row : {-1, 3}) {
    try {
      GlobalTokens(packed.batch(), std::vector<int32_t>{row});
      FAIL() << row;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr("global token in row " + std::to_string(row)));
    }
  }
}

TEST(GlobalTokens, OfALongformerThatClassifiesAreTheFirst) {
  ModelConfig c = tiny(Family::encoder_only);
  const PackedBatch packed({{1, 2, 3}, {4, 5}});
  EXPECT_FALSE(default_global_tokens(c, packed.batch()));
  c.attention = AttentionSpan::longformer, c.windows = {2};
  EXPECT_FALSE(default_global_tokens(c, packed.batch()));
  c.head = Head::classifier, c.labels = 2;
  const auto global = default_global_tokens(c, packed.batch());
  ASSERT_TRUE(global);
  EXPECT_THAT(global->rows, ElementsAre(0, 3));
}

// ---- residuals -------------------------------------------------------------------------------

std::vector<double> normed(std::vector<double> x) {
  double mean = 0, square = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) square += (v - mean) * (v - mean) / static_cast<double>(x.size());
  for (double& v : x) v = (v - mean) / std::sqrt(square + 1e-5);
  return x;
}
std::vector<double> sum(std::vector<double> a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// A decoder of one layer whose sub-layers answer with their output's bias whatever they are asked.
TEST(Transformer, PutsNormsWhereTheConfigSays) {
  const std::vector<double> x{1, -2, 3, 0, 2, 5, -1, 4}, a{2, 0, 1, 1, -3, 0, 2, 1},
      b{0, 1, 0, -1, 4, 2, 0, 1};
  for (const NormPlace place : {NormPlace::pre, NormPlace::post, NormPlace::both}) {
    ModelConfig c = tiny(Family::decoder_only);
    c.decoder_layers = 1, c.norm_place = place;
    Network model = silent(c);
    const auto set = [&](const char* name, const std::vector<double>& values, size_t first = 0) {
      std::ranges::copy(values, model.parameters().values(name).begin() + static_cast<long>(first));
    };
    set("embedding.tokens", x, 3 * 8);
    set("decoder.0.self.out.bias", a);
    set("decoder.0.ffn.out.bias", b);
    std::vector<double> expected;
    if (place == NormPlace::pre) expected = sum(sum(x, a), b);
    if (place == NormPlace::post) expected = normed(sum(normed(sum(x, a)), b));
    if (place == NormPlace::both) expected = sum(sum(x, normed(a)), normed(b));
    const PackedBatch packed(std::vector<std::vector<int32_t>>{{3}});
    EXPECT_THAT(decoded(model, packed.batch()), Pointwise(FloatNear(1e-5f), expected))
        << name_of(place);
  }
}

// ---- positions -------------------------------------------------------------------------------

// Where tokens and layers are silent, hidden states are the positions.
TEST(Transformer, LaysSinusoidsOutInTurnOrInHalves) {
  const double slow = 2 / std::pow(10000.0, 0.25), slower = 2 / 100.0,
               slowest = 2 / std::pow(10000.0, 0.75);
  const double s[] = {std::sin(2), std::sin(slow), std::sin(slower), std::sin(slowest)};
  const double k[] = {std::cos(2), std::cos(slow), std::cos(slower), std::cos(slowest)};
  ModelConfig c = tiny(Family::decoder_only);
  c.position = Position::sinusoidal;
  const PackedBatch packed({{1, 1, 1}});
  const auto third_row = [&](SinusoidLayout layout) {
    c.sinusoid_layout = layout;
    const std::vector<float> all = decoded(silent(c), packed.batch());
    return std::vector<float>(all.begin() + 16, all.end());
  };
  EXPECT_THAT(third_row(SinusoidLayout::interleaved),
              Pointwise(FloatNear(1e-6f), {s[0], k[0], s[1], k[1], s[2], k[2], s[3], k[3]}));
  EXPECT_THAT(third_row(SinusoidLayout::half),
              Pointwise(FloatNear(1e-6f), {s[0], s[1], s[2], s[3], k[0], k[1], k[2], k[3]}));
  // The last wave is 10000 long, and those between are evenly spread: 10000^(1/3), 10000^(2/3).
  c.position_offset = 0;
  EXPECT_NEAR(third_row(SinusoidLayout::half_inclusive)[1], std::sin(2 / std::cbrt(10000.0)), 1e-6);
  EXPECT_NEAR(third_row(SinusoidLayout::half_inclusive)[3], std::sin(2 / 10000.0), 1e-6);
}

TEST(Transformer, TakesPositionsFromBehindTheOffset) {
  ModelConfig c = tiny(Family::decoder_only);
  c.position = Position::learned, c.position_offset = 2;
  Network model = silent(c);
  const auto table = model.parameters().values("embedding.positions");
  ASSERT_EQ(table.size(), size_t{34} * 8);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i / 8);
  const PackedBatch packed({{1, 1}});
  EXPECT_THAT(decoded(model, packed.batch()),
              ElementsAre(2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3));
}

struct RopeCase {
  RopeScaling scaling = RopeScaling::none;
  float factor = 1;
  int64_t original = 0;
};

std::vector<float> with_rope(const RopeCase& rope, std::vector<int32_t> positions) {
  ModelConfig c = tiny(Family::decoder_only);
  c.position = Position::rope, c.rope_base = 100;
  c.rope_scaling = rope.scaling, c.rope_factor = rope.factor;
  c.rope_original_positions = rope.original;
  PackedBatch packed({{1, 2, 3, 4}});
  packed.positions = std::move(positions);
  Network model(c, 3);
  for (float& w : model.parameters().all_values()) w *= 10;  // attention that cares
  return decoded(model, packed.batch());
}

// A head of 4 has waves of 2π and 20π positions here.
TEST(Transformer, StretchesRope) {
  const std::vector<int32_t> far{0, 4, 8, 12}, near{0, 2, 4, 6};
  const auto plain_near = with_rope({}, near), plain_far = with_rope({}, far);
  EXPECT_THAT(plain_far, testing::Not(Pointwise(FloatNear(1e-3f), plain_near)));
  // linear: twice as far is as far as before.
  const auto linear = with_rope({RopeScaling::linear, 2}, far);
  EXPECT_THAT(linear, Pointwise(FloatNear(1e-5f), plain_near));
  // llama3: of waves that all fit four times into the training's length, none is stretched …
  EXPECT_EQ(with_rope({RopeScaling::llama3, 2, 1000}, far), plain_far);
  // … and of waves that are all longer than it, every one.
  EXPECT_THAT(with_rope({RopeScaling::llama3, 2, 4}, far), Pointwise(FloatNear(1e-5f), linear));
}

// ---- maps, losses, mistakes ------------------------------------------------------------------

TEST(Transformer, NamesItsAttentionMaps) {
  const Network model(tiny(Family::encoder_decoder), 1);
  const PackedBatch source({{1, 2, 3}, {4}}), target({{5, 6}, {7, 8}});
  const Batch source_batch = source.batch(), target_batch = target.batch();
  Workspace run;
  AttentionMaps encoder, decoder;
  model.transformer().hidden(run.ctx, {.source = source_batch,
                                       .target = target_batch,
                                       .encoder_maps = &encoder,
                                       .decoder_maps = &decoder});
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
  for (const AttentionMaps* maps : {&encoder, &decoder}) {
    for (const AttentionMap& map : *maps) {
      names.push_back(map.name), sizes.push_back(map.probabilities.size());
    }
  }
  EXPECT_THAT(names, ElementsAre("encoder.0.self", "decoder.0.self", "decoder.0.cross",
                                 "decoder.1.self", "decoder.1.cross"));
  // Two heads; 3 × 3 and 1 × 1, 2 × 2 twice, 2 × 3 and 2 × 1.
  EXPECT_THAT(sizes, ElementsAre(20, 16, 16, 16, 16));
  // A target's first row sees itself alone.
  EXPECT_EQ(decoder[0].probabilities.data[0], 1);
  EXPECT_EQ(decoder[0].probabilities.data[1], 0);
}

TEST(Transformer, ItsTokenLossIsThatOfItsLogits) {
  ModelConfig c = tiny(Family::decoder_only);
  c.logits_scale = 0.5f, c.logits_soft_cap = 2, c.final_norm = true;
  Network model(c, 5);
  for (float& w : model.parameters().values("embedding.tokens")) w *= 50;
  const PackedBatch packed({{1, 2, 3, 4, 5}});
  const std::vector<int32_t> labels{2, 3, kIgnoreLabel, 9, 0};
  Workspace run;
  const Batch batch = packed.batch();
  const Var hidden = model.transformer().hidden(run.ctx, {.source = batch});
  const LossSum loss = model.transformer().token_loss(run.ctx, hidden, labels, {});
  const Var logits = model.transformer().logits(run.ctx, hidden);
  double expected = 0, largest = 0;
  for (int64_t r = 0; r < 5; ++r) {
    const float* z = logits.value.row(r);
    double total = 0;
    for (int i = 0; i < 10; ++i) {
      total += std::exp(double{z[i]});
      largest = std::max(largest, std::abs(double{z[i]}));
    }
    if (labels[static_cast<size_t>(r)] != kIgnoreLabel) {
      expected += std::log(total) - z[labels[static_cast<size_t>(r)]];
    }
  }
  EXPECT_EQ(loss.count, 4);
  EXPECT_NEAR(loss.sum, expected, 1e-5 * expected);
  EXPECT_LT(largest, 2);  // the cap
  EXPECT_GT(largest, 1);  // which has something to do
}

TEST(Transformer, RunsOnlyTheStacksOfItsFamily) {
  const PackedBatch packed({{1, 2}});
  const Batch batch = packed.batch();
  const KvView no_cache;
  Workspace run;
  const Network encoder(tiny(Family::encoder_only)), decoder(tiny(Family::decoder_only));
  EXPECT_EQ(code_of([&] { decoder.transformer().cache_source(run.ctx, batch, no_cache); }),
            ErrorCode::internal);
  EXPECT_EQ(code_of([&] { encoder.transformer().decode(run.ctx, batch, no_cache); }),
            ErrorCode::internal);
}

TEST(Transformer, AnEncoderDecoderWithoutTargetReturnsTheEncodersHiddenStates) {
  const Network model(tiny(Family::encoder_decoder), 1);
  const PackedBatch source({{1, 2, 3}}), target({{5, 6}});
  Workspace run;
  Var memory;
  model.transformer().hidden(
      run.ctx, {.source = source.batch(), .target = target.batch(), .encoder_hidden = &memory});
  const Var alone = model.transformer().hidden(run.ctx, {.source = source.batch()});
  EXPECT_EQ(numbers(alone.value), numbers(memory.value));
}

TEST(Transformer, ReturnsOnlyOutputRows) {
  const std::vector<int32_t> rows{3, 1};
  for (const Family family : {Family::encoder_only, Family::decoder_only}) {
    const Network model(tiny(family), 1);
    const PackedBatch packed({{1, 2, 3}, {4, 5}});
    Workspace run;
    const Var all = model.transformer().hidden(run.ctx, {.source = packed.batch()});
    const Var some =
        model.transformer().hidden(run.ctx, {.source = packed.batch(), .output_rows = rows});
    EXPECT_EQ(numbers(some.value), numbers(take_rows(run.ctx, all, rows).value));
  }
}

// Feature rows that are the tokens' embeddings give what the tokens give.
TEST(Transformer, TakesEmbeddedRowsInPlaceOfTokens) {
  for (const Family family : {Family::encoder_only, Family::decoder_only}) {
    ModelConfig c = tiny(family);
    c.position = Position::learned;
    Network model(c, 1);
    const PackedBatch packed({{1, 2, 3}, {4, 5}});
    Batch batch = packed.batch();
    const std::vector<float> expected = decoded(model, batch);
    std::vector<float> features;
    for (const int32_t id : packed.tokens) {
      const auto row =
          model.parameters()
              .values("embedding.tokens")
              .subspan(static_cast<size_t>(id * c.width), static_cast<size_t>(c.width));
      features.insert(features.end(), row.begin(), row.end());
    }
    batch.tokens = {};
    batch.features = ConstMat(features.data(), std::ssize(packed.tokens), c.width);
    EXPECT_EQ(decoded(model, batch), expected);
  }
}

// With a tape the default global tokens must outlive hidden(): backward reads them.
TEST(Transformer, ALongformerRegressorHasItsDefaultGlobalTokensInTraining) {
  ModelConfig c = tiny(Family::encoder_only);
  c.attention = AttentionSpan::longformer, c.windows = {1}, c.head = Head::regression, c.labels = 1;
  Network model(c, 1);
  model.add_gradients();
  const PackedBatch packed({{1, 2, 3, 4}, {5, 6, 7}});
  const GlobalTokens first_rows(packed.batch(), std::vector<int32_t>{0, 4});
  const std::vector<float> references{1, -1};
  const auto gradient = [&](const GlobalTokens* global_tokens) {
    Workspace run;
    Tape tape;
    run.ctx.tape = &tape;
    GradientStep gradients(model.parameters());
    const Transformer& t = model.transformer();
    const Var hidden =
        t.hidden(run.ctx, {.source = packed.batch(), .global_tokens = global_tokens});
    squared_error(run.ctx, t.classify(run.ctx, hidden, packed.batch()),
                  ConstMat(references.data(), 2, 1), 1);
    tape.backward(run.ctx);
    gradients.finish();
    const auto values = model.parameters().gradient("encoder.0.global.qkv.weight");
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> expected = gradient(&first_rows);
  EXPECT_THAT(expected, testing::Contains(testing::Ne(0.0f)));
  EXPECT_EQ(gradient(nullptr), expected);
}

TEST(Transformer, ATokenBeyondTheVocabularyIsTheCallersMistake) {
  const PackedBatch packed({{1, 10}});
  EXPECT_EQ(code_of([&] { decoded(Network(tiny(Family::decoder_only)), packed.batch()); }),
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace heed
