// The engine finds the ids and scores that transformers 4.47.1 found, greedily and with a beam.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "heed/engine.h"
#include "model/golden_models_testing.h"

namespace heed {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

json read_json(const std::string& path) { return json::parse(std::ifstream(path)); }

// All inputs of a golden.json at once.
std::vector<Result> run_all(Engine& engine, const json& golden, const SearchOptions& search) {
  std::vector<Request> requests;
  for (const json& ids : golden.contains("sources") ? golden["sources"] : golden["sequences"]) {
    requests.push_back({.ids = ids.get<Ids>(), .search = search});
  }
  std::vector<Result> results(requests.size());
  engine.run(std::move(requests), [&](size_t i, Result&& result) { results[i] = result; });
  return results;
}

class GoldenSearchTest : public testing::TestWithParam<std::string> {
 protected:
  GoldenSearchTest() {
    search_ = model_.search_options();
    search_.max_new_tokens = model_.has_source() ? 14 : 12;  // see generate_is
  }

  json golden_ = read_json(golden_model_folder(GetParam()) + "/golden.json");
  Model model_ = Model::load(golden_model_folder(GetParam()));
  SearchOptions search_;
};

TEST_P(GoldenSearchTest, Greedy) {
  Engine engine(model_, {.threads = 2, .kv_memory_bytes = 4 << 20});
  const std::vector<Result> results = run_all(engine, golden_, search_);
  ASSERT_EQ(results.size(), golden_["greedy"].size());
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].best().ids, golden_["greedy"][i].get<Ids>()) << "input " << i;
  }
}

TEST_P(GoldenSearchTest, Beam) {
  const bool lists = golden_.contains("beam4_scores");
  search_.beam = 4, search_.nbest = lists ? 4 : 1;
  search_.early_stopping = EarlyStopping::yes;
  search_.length_penalty = lists ? 0.6 : 1.0;
  // Prompts in pieces of 3 tokens, and hardly any memory: neither may change a thing.
  for (const int64_t batch_tokens : {3, 1024}) {
    Engine engine(model_, {.threads = 2, .kv_memory_bytes = 4 << 20, .batch_tokens = batch_tokens});
    const std::vector<Result> results = run_all(engine, golden_, search_);
    ASSERT_EQ(results.size(), golden_["beam4"].size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (!lists) {
        EXPECT_EQ(results[i].best().ids, golden_["beam4"][i].get<Ids>()) << "input " << i;
        continue;
      }
      ASSERT_EQ(results[i].answers.size(), 4u);
      for (size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(results[i].answers[k].ids, golden_["beam4"][i][k].get<Ids>()) << i << " " << k;
        EXPECT_NEAR(results[i].answers[k].score, golden_["beam4_scores"][i][k].get<double>(), 1e-4);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenSearchTest, testing::ValuesIn(golden_models("greedy")),
                         [](const auto& test) { return test_name(test.param); });

TEST(Stories, GreedyGenerationEqualsTheReference) {
  const std::string folder = std::string(HEED_SHARED) + "/golden/models-real/stories260K";
  if (!std::ifstream(folder + "/config.json")) GTEST_SKIP() << folder << " is not there";
  const auto expected = read_json(folder + "/greedy_ids_200.json").get<Ids>();
  const Model model = Model::load(folder);
  Engine engine(model);
  SearchOptions search;
  search.max_new_tokens = static_cast<int64_t>(expected.size()) - 1;
  EXPECT_EQ(engine.run_ids({{expected.front()}}, search).front(), expected);
}

}  // namespace
}  // namespace heed
