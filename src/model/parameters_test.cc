#include "model/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
  // Xavier's bound of q, k and v each, not of the tall matrix that they make together.
  const float bound = std::sqrt(6.0f / (128 + 128));
  float largest = 0;
  for (const float w : p.values("encoder.0.self.qkv.weight")) {
    largest = std::max(largest, std::abs(w));
  }
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.98f * bound);
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
  p.begin_step();
  p.weight("encoder.0.self.norm.gamma").gradient->written = true;
  p.finish_gradients();
  EXPECT_EQ(p.gradient("encoder.0.self.norm.gamma")[0], 7);
  EXPECT_EQ(p.gradient("encoder.1.self.norm.gamma")[0], 0);
}

}  // namespace
}  // namespace heed
