#include "model/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/error.h"
#include "heed/model_files.h"
#include "model/parameters.h"

namespace heed {
namespace {

TEST(Presets, AreAllValidAndDescribed) {
  ASSERT_GE(presets().size(), 20u);
  for (const Preset& p : presets()) {
    EXPECT_THAT(validate(preset(p.name)), testing::IsEmpty()) << p.name;
    EXPECT_FALSE(p.about.empty()) << p.name;
  }
}

// A tied embedding's gradient is there from the loss to the end of a step.
TEST(Presets, TellTheMemoryOfAStepWithGradientsInFlight) {
  const ModelInfo info = preset_info("gpt2");
  const int64_t embedding = int64_t{50257} * 768 * 4;
  EXPECT_EQ(info.training_bytes, 3 * info.weight_bytes);
  ASSERT_FALSE(info.memory.empty());
  for (const ShapeMemory& shape : info.memory) {
    EXPECT_GT(shape.training_bytes, embedding);
    EXPECT_LT(shape.inference_bytes, shape.training_bytes - embedding);
  }
  // Of one row or two, little else is held at a time: not a second copy of all weights.
  EXPECT_LT(info.memory.front().training_bytes, info.weight_bytes);
}

// The paper's base model is given as 65M; with the 37,000 shared ids it states, its matrices and
// vectors add up to 63.1M, which is what its preset says.
TEST(Presets, HaveThePublishedNumbersOfParameters) {
  int checked = 0;
  for (const Preset& p : presets()) {
    if (p.published_million_parameters == 0) continue;
    const double actual = static_cast<double>(parameter_count(preset(p.name))) / 1e6;
    EXPECT_NEAR(actual, p.published_million_parameters, 0.005 * p.published_million_parameters)
        << p.name;
    ++checked;
  }
  EXPECT_GE(checked, 16);
}

TEST(Presets, AnUnknownNameBringsTheNearest) {
  try {
    preset("transformer-bse");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.hint(), testing::HasSubstr("transformer-base"));
  }
}

}  // namespace
}  // namespace heed
