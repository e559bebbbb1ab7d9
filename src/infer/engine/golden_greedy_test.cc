// Greedy generation of the golden models, with cache and sampler, gives the ids that transformers
// 4.47.1 gave: all sequences in one batch, each leaving when it ends.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "infer/engine/decode_batch.h"
#include "infer/search/sampler.h"
#include "model/golden_models_testing.h"
#include "model/network.h"
#include "model/packed_batch.h"

namespace heed {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

json read_json(const std::string& path) { return json::parse(std::ifstream(path)); }

// What golden.json was made with: see its generate_is.
constexpr size_t kNewTokens = 12, kNewTargetTokens = 14;

class Greedy {
 public:
  explicit Greedy(const std::string& folder)
      : network_(Network::load(folder, {.dropout = false})),
        pool_(2),
        arena_(256 << 20),
        cache_(network_.transformer().kv_layout(), {.memory_bytes = 16 << 20}),
        settings_(read_json(folder + "/config.json")) {
    for (const auto& words : settings_.value("bad_words_ids", std::vector<Ids>{})) {
      if (words.size() == 1) banned_.push_back(words[0]);
    }
    forced_end_ = settings_.value("forced_eos_token_id", -1);
  }

  std::vector<Ids> generate(const json& golden) {
    const bool has_source = golden.contains("sources");
    if (has_source) {
      add_sources(golden["sources"].get<std::vector<Ids>>());
    } else {
      for (Ids& prompt : golden["sequences"].get<std::vector<Ids>>()) {
        running_.push_back({cache_.open(), std::move(prompt)});
      }
    }
    most_new_ = has_source ? kNewTargetTokens : kNewTokens;
    for (Running& r : running_) r.prompt = r.ids.size();
    while (step()) {
    }
    std::vector<Ids> all;
    for (const Running& r : running_) all.push_back(r.ids);
    EXPECT_EQ(cache_.used_blocks(), 0);
    return all;
  }

 private:
  struct Running {
    KvCache::Sequence id;
    Ids ids;
    size_t prompt = 0, done = 0;  // tokens of the prompt, and tokens that the model has run
    bool ended = false;
  };

  void add_sources(const std::vector<Ids>& sources) {
    const PackedBatch batch(sources);
    std::vector<KvCache::Sequence> sequences;
    for (const Ids& source : sources) {
      sequences.push_back(cache_.open());
      ASSERT_TRUE(cache_.add_source(sequences.back(), static_cast<int64_t>(source.size())));
      running_.push_back({sequences.back(), {network_.config().decoder_start_id}});
    }
    const Arena::Mark mark = arena_.mark();
    Ctx ctx{pool_, arena_};
    std::vector<KvTable> tables;
    network_.transformer().cache_source(ctx, batch.batch(), cache_.view(sequences, tables));
    arena_.rewind(mark);
  }

  // One token for each sequence that has not ended. False: all have.
  bool step() {
    DecodeBatch batch(cache_);
    std::vector<Running*> rows;
    for (Running& r : running_) {
      if (r.ended) continue;
      EXPECT_TRUE(batch.add(r.id, std::span(r.ids).subspan(r.done)));
      r.done = r.ids.size();
      rows.push_back(&r);
    }
    if (rows.empty()) return false;
    const Arena::Mark mark = arena_.mark();
    Ctx ctx{pool_, arena_};
    const Transformer& t = network_.transformer();
    const Var hidden = t.decode(ctx, batch.batch(), batch.view());
    const Var logits = t.logits(ctx, take_rows(ctx, hidden, batch.last_rows()));
    for (size_t i = 0; i < rows.size(); ++i) {
      Running& r = *rows[i];
      const bool last = r.ids.size() - r.prompt + 1 == most_new_;
      const std::span<const float> row(logits.value.row(static_cast<int64_t>(i)),
                                       static_cast<size_t>(logits.cols()));
      const auto next =
          sampler_.choose(row, {.temperature = 0},
                          {.rules = {.banned = banned_, .forced = last ? forced_end_ : -1}});
      r.ids.push_back(next->token);
      r.ended = last || next->token == network_.config().eos_id;
      if (r.ended) cache_.release(r.id);
    }
    arena_.rewind(mark);
    return true;
  }

  Network network_;
  ThreadPool pool_;
  Arena arena_;
  KvCache cache_;
  Sampler sampler_;
  json settings_;
  Ids banned_;
  int32_t forced_end_ = -1;
  size_t most_new_ = 0;
  std::vector<Running> running_;
};

class GoldenGreedyTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenGreedyTest, TheIdsAreTheSame) {
  const std::string folder = golden_model_folder(GetParam());
  const json golden = read_json(folder + "/golden.json");
  const auto expected = golden["greedy"].get<std::vector<Ids>>();
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(Greedy(folder).generate(golden), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenGreedyTest, testing::ValuesIn(golden_models("greedy")),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace heed
