#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "heed/error.h"

namespace heed {
namespace {

using testing::HasSubstr;

std::string message_of(const std::string& json) {
  try {
    config_from_json(json, {}, "test.json");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ModelConfig, IsValidAsItStands) { EXPECT_THAT(validate(ModelConfig{}), testing::IsEmpty()); }

TEST(ModelConfig, ListsEveryFieldOnceWithHelp) {
  ModelConfig config;
  std::set<std::string> names;
  describe(config, [&](const char* name, auto&, const char* help) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_STRNE(help, "") << name;
  });
  EXPECT_GT(names.size(), 50u);
}

TEST(ModelConfig, SurvivesJson) {
  ModelConfig config;
  config.family = Family::decoder_only;
  config.position = Position::rope;
  config.norm = NormKind::rms_norm;
  config.attention = AttentionSpan::sliding_window;
  config.windows = {0, 128};
  config.norm_eps = 1e-6f;
  config.kv_heads = 2;
  EXPECT_EQ(config_from_json(to_json(config), {}, "test.json"), config);
}

TEST(ModelConfig, NamesAllThatIsWrongWithAFile) {
  const std::string message =
      message_of(R"({"wdith": 4, "heads": "many", "position": "somewhere", "ffn": 2.5})");
  EXPECT_THAT(message, HasSubstr("unknown field wdith (did you mean width?)"));
  EXPECT_THAT(message, HasSubstr("heads"));
  EXPECT_THAT(message, HasSubstr("rope"));  // among the choices for position
  EXPECT_THAT(message, HasSubstr("ffn"));
  EXPECT_THAT(message_of("[1, 2]"), HasSubstr("not a JSON object"));
}

TEST(ModelConfig, ValidateFindsEveryProblemAtOnce) {
  ModelConfig config;
  config.width = 30;
  config.heads = 4;
  config.dropout = 1;
  config.head = Head::classifier;
  config.windows = {4};
  config.norm_offset = 1;
  config.logits_soft_cap = 30, config.output_bias = true;
  const auto problems = validate(config);
  EXPECT_THAT(problems,
              testing::Contains(HasSubstr("width must be a multiple of heads, got 30 and 4")));
  EXPECT_THAT(problems, testing::Contains(HasSubstr("dropout must be in [0, 1), got 1")));
  EXPECT_THAT(problems, testing::Contains(HasSubstr("labels must be positive")));
  EXPECT_THAT(problems, testing::Contains(HasSubstr("windows must be empty")));
  EXPECT_THAT(problems, testing::Contains(HasSubstr("norm_offset must be 0")));
  EXPECT_THAT(problems, testing::Contains(HasSubstr("logits_soft_cap must be 0")));
  EXPECT_THROW(check(config, "test"), Error);
}

TEST(ModelConfig, ATableOfSinusoidsFitsIntoMemory) {
  const auto problems = [](int64_t positions, int offset) {
    ModelConfig config;
    config.max_positions = positions, config.position_offset = offset;
    return validate(config);
  };
  EXPECT_THAT(problems(100'000, 2), testing::IsEmpty());
  const auto refused = testing::Contains(HasSubstr("the table of sinusoids fits into 1 GB"));
  EXPECT_THAT(problems(2'000'000'000, 0), refused);
  EXPECT_THAT(problems(8, 2'000'000'000), refused);
}

}  // namespace
}  // namespace heed
