#include "model/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/gradient_step.h"
#include "model/presets.h"

namespace heed {
namespace {

ModelConfig small() {
  ModelConfig config = preset("transformer-tiny");
  config.vocabulary = 100;
  return config;
}

TEST(Parameters, StartTheSameFromTheSameSeedAlone) {
  Parameters a(small()), b(small()), c(small());
  a.initialise(1), b.initialise(1), c.initialise(2);
  EXPECT_TRUE(std::ranges::equal(a.all_values(), b.all_values()));
  EXPECT_FALSE(std::ranges::equal(a.all_values(), c.all_values()));
}

TEST(Parameters, AWeightsStartDoesNotDependOnTheOthers) {
  ModelConfig deeper = small();
  deeper.encoder_layers += 1;
  Parameters a(small()), b(deeper);
  a.initialise(1), b.initialise(1);
  const char* name = "decoder.0.ffn.in.weight";
  EXPECT_TRUE(std::ranges::equal(a.values(name), b.values(name)));
}

TEST(Parameters, NormsStartAtOneAndStackedMatricesAsTheirParts) {
  Parameters p(small());
  p.initialise(3);
  for (const float gamma : p.values("encoder.0.self.norm.gamma")) EXPECT_EQ(gamma, 1);
  // Xavier's bound of q, k and v each, not of the tall matrix that they make together; less √2.
  const float bound = std::sqrt(0.5f) * std::sqrt(6.0f / (128 + 128));
  float largest = 0;
  for (const float w : p.values("encoder.0.self.qkv.weight")) {
    largest = std::max(largest, std::abs(w));
  }
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.98f * bound);
}

// The root of the mean square of some rows.
double spread(std::span<const float> values) {
  double square = 0;
  for (const float x : values) square += double{x} * x;
  return std::sqrt(square / static_cast<double>(values.size()));
}

// As transformers' T5 starts: T5PreTrainedModel._init_weights with a factor of 1.
TEST(Parameters, T5StartsFromWhatItsProductsSumOver) {
  ModelConfig c = preset("t5-v1.1-small");
  EXPECT_EQ(c.initialisation, Initialisation::t5);
  c.vocabulary = 1000, c.width = 128, c.heads = 4, c.head_dim = 16, c.ffn = 256;
  c.encoder_layers = c.decoder_layers = 1;
  ASSERT_TRUE(validate(c).empty());
  Parameters p(c);
  p.initialise(11);
  const auto expect_spread = [&](const std::string& name, double expected, size_t part = 0,
                                 size_t parts = 1) {
    const std::span<const float> values = p.values(name);
    const size_t size = values.size() / parts;
    // A share of the deviations of the deviation itself: 1/√(2n) each.
    const double tolerance = 5 / std::sqrt(2.0 * static_cast<double>(size));
    EXPECT_NEAR(spread(values.subspan(part * size, size)), expected, tolerance * expected)
        << name << ", part " << part;
  };
  expect_spread("embedding.tokens", 1);
  expect_spread("output.weight", 1);
  for (const std::string side : {"encoder", "decoder"}) {
    expect_spread(side + ".t5_bias", std::pow(128, -0.5));
    expect_spread(side + ".0.self.qkv.weight", std::pow(128 * 16, -0.5), 0, 3);
    expect_spread(side + ".0.self.qkv.weight", std::pow(128, -0.5), 1, 3);
    expect_spread(side + ".0.self.qkv.weight", std::pow(128, -0.5), 2, 3);
    expect_spread(side + ".0.self.out.weight", std::pow(4 * 16, -0.5));
    expect_spread(side + ".0.ffn.in.weight", std::pow(128, -0.5));
    expect_spread(side + ".0.ffn.out.weight", std::pow(256, -0.5));
  }
  expect_spread("decoder.0.cross.q.weight", std::pow(128 * 16, -0.5));
  expect_spread("decoder.0.cross.kv.weight", std::pow(128, -0.5));
}

TEST(Parameters, TheFamilyDecidesUnlessTheConfigDoes) {
  ModelConfig c = preset("gpt2");
  c.vocabulary = 100, c.width = 64, c.heads = 4, c.ffn = 128, c.decoder_layers = 8;
  const auto start = [&](Initialisation how) {
    c.initialisation = how;
    Parameters p(c);
    p.initialise(5);
    return std::pair{spread(p.values("decoder.0.ffn.in.weight")),
                     spread(p.values("decoder.0.ffn.out.weight"))};
  };
  EXPECT_EQ(start(Initialisation::by_family), start(Initialisation::gpt2));
  const auto [in, out] = start(Initialisation::gpt2);
  EXPECT_NEAR(in, 0.02, 1e-3);
  EXPECT_NEAR(out, 0.02 / 4, 3e-4);  // two additions in each of 8 layers
  EXPECT_NEAR(start(Initialisation::normal).second, 0.02, 1e-3);
  // Uniform within ±√(6 / (64 + 128)): a third of the bound's square.
  EXPECT_NEAR(start(Initialisation::xavier).first, std::sqrt(2.0 / (64 + 128)), 3e-3);
}

TEST(Parameters, TyingIsOneMatrix) {
  EXPECT_FALSE(Parameters(small()).weight("output.weight"));
  ModelConfig untied = small();
  untied.tying = Tying::none;
  const Parameters p(untied);
  EXPECT_TRUE(p.weight("output.weight"));
  EXPECT_TRUE(p.weight("target.tokens"));
  EXPECT_EQ(parameter_count(untied), parameter_count(small()) + 2 * 100 * 128);
}

TEST(Parameters, WhatNothingContributedToHasNoGradient) {
  Parameters p(small());
  p.add_gradients();
  std::ranges::fill(p.all_gradients(), 7.0f);
  GradientStep gradients(p);
  p.weight("encoder.0.self.norm.gamma").gradient->written = true;
  gradients.finish();
  EXPECT_EQ(p.gradient("encoder.0.self.norm.gamma")[0], 7);
  EXPECT_EQ(p.gradient("encoder.1.self.norm.gamma")[0], 0);
}

}  // namespace
}  // namespace heed
