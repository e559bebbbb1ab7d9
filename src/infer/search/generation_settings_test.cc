#include "infer/search/generation_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/error.h"

namespace heed {
namespace {

using nlohmann::json;
using testing::ElementsAre;

TEST(GenerationSettings, AreReadFromBothFiles) {
  const json config{{"num_beams", 2}, {"bad_words_ids", {{59}}}, {"eos_token_id", 7}};
  const json generation{{"num_beams", 6},         {"early_stopping", "never"},
                        {"max_length", 512},      {"forced_eos_token_id", 0},
                        {"do_sample", true},      {"top_p", 0.9},
                        {"eos_token_id", {1, 2}}, {"temperature", nullptr}};
  const GenerationSettings s = read_generation_settings(config, generation, "m");
  EXPECT_EQ(s.search.beam, 6);
  EXPECT_EQ(s.search.early_stopping, EarlyStopping::never);
  EXPECT_EQ(s.search.max_length, 512);
  EXPECT_EQ(s.search.forced_last_id, 0);
  EXPECT_TRUE(s.search.sample);
  EXPECT_DOUBLE_EQ(s.search.top_p, 0.9);
  EXPECT_DOUBLE_EQ(s.search.temperature, 1);
  EXPECT_THAT(s.search.end_ids, ElementsAre(1, 2));
  EXPECT_THAT(s.search.banned_ids, ElementsAre(ElementsAre(59)));
  EXPECT_THAT(s.names, ElementsAre("bad_words_ids", "do_sample", "early_stopping", "eos_token_id",
                                   "forced_eos_token_id", "max_length", "num_beams", "top_p"));
}

TEST(GenerationSettings, OfAnotherTypeAreAnError) {
  for (const json& config :
       {json{{"num_beams", "four"}}, json{{"early_stopping", 3}}, json{{"eos_token_id", "x"}},
        json{{"bad_words_ids", {1}}}, json{{"forced_bos_token_id", 5e65}}, json{{"num_beams", 2.5}},
        json{{"eos_token_id", int64_t{1} << 40}}, json{{"top_p", true}},
        json{{"max_length", UINT64_MAX}}, json{{"suppress_tokens", {1e30}}}}) {
    EXPECT_THROW(read_generation_settings(config, {}, "m"), Error) << config;
  }
}

std::string error_of(const json& generation) {
  try {
    read_generation_settings({}, generation, "m");
  } catch (const Error& error) {
    return error.what() + std::string(" | ") + error.hint();
  }
  return "";
}

TEST(GenerationSettings, WithAnUnknownKeyAreAnError) {
  EXPECT_EQ(error_of({{"tempratur", 0.5}}),
            "m/generation_config.json: unknown key tempratur | did you mean temperature?");
  EXPECT_EQ(error_of({{"flux", 1}}),
            "m/generation_config.json: unknown key flux | remove the key; docs/search-options.md "
            "lists those that Heed reads");
  // A search that Heed does not have: by name only when it is off.
  EXPECT_EQ(error_of({{"typical_p", 0.9}}),
            "m/generation_config.json: typical_p must be 1, got 0.9: this search is not supported "
            "| remove the key to use the model with the searches that Heed has");
  EXPECT_EQ(error_of({{"typical_p", 1.0}, {"penalty_alpha", nullptr}, {"num_beam_groups", 1}}), "");
  // Keys of other tools without an effect here.
  EXPECT_EQ(error_of({{"transformers_version", "4.40.0"},
                      {"_from_model_config", true},
                      {"use_cache", true},
                      {"renormalize_logits", true},
                      {"pad_token_id", 0},
                      {"cache_implementation", "hybrid"}}),
            "");
}

TEST(GenerationSettings, HaveStopStrings) {
  EXPECT_THAT(read_generation_settings({}, {{"stop_strings", "END"}}, "m").search.stop,
              ElementsAre("END"));
  EXPECT_THAT(read_generation_settings({}, {{"stop_strings", {"a", "b"}}}, "m").search.stop,
              ElementsAre("a", "b"));
}

}  // namespace
}  // namespace heed
