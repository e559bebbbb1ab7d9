// One step of decoding takes nothing from the heap: its numbers are the arena's, used again each
// step; and neither does all else that the engine does for a token.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <tuple>

#include "base/allocation_count_testing.h"
#include "infer/engine/decode_batch.h"
#include "infer/engine/engine_testing.h"
#include "model/network.h"
#include "model/packed_batch.h"
#include "model/quantize.h"

namespace heed {
namespace {

ModelConfig config_with(Family family, Position position, std::vector<int64_t> windows) {
  ModelConfig c;
  c.family = family, c.position = position;
  c.vocabulary = 60, c.width = 32, c.heads = 4, c.kv_heads = 2, c.ffn = 64;
  c.encoder_layers = 1, c.decoder_layers = 2, c.max_positions = 300;
  if (!windows.empty()) c.attention = AttentionSpan::sliding_window;
  c.windows = std::move(windows);
  return c;
}

// A small beam search: three beams of one sentence, of which one is forked and one dropped at each
// step.
class Beams {
 public:
  explicit Beams(const ModelConfig& config)
      : model_(config, 3),
        pool_(2),
        arena_(32 << 20),
        cache(model_.transformer().kv_layout(), {.memory_bytes = 4 << 20}),
        step_(cache) {}

  void search(int steps) {
    beams_.clear();
    beams_.push_back(cache.open());
    if (model_.config().family == Family::encoder_decoder) {
      const Arena::Mark mark = arena_.mark();
      Ctx ctx{pool_, arena_};
      ASSERT_TRUE(cache.add_source(beams_[0], source_.batch().rows()));
      model_.transformer().cache_source(ctx, source_.batch(), cache.view(beams_, tables_));
      arena_.rewind(mark);
    }
    while (beams_.size() < 3) beams_.push_back(cache.fork(beams_[0]));
    for (int i = 0; i < steps; ++i) {
      step_.clear();
      for (const KvCache::Sequence beam : beams_) {
        const int32_t token = 1 + i % 50;
        ASSERT_TRUE(step_.add(beam, {&token, 1}));
      }
      const Arena::Mark mark = arena_.mark();
      Ctx ctx{pool_, arena_};
      const Transformer& t = model_.transformer();
      const Var hidden = t.decode(ctx, step_.batch(), step_.view());
      t.logits(ctx, take_rows(ctx, hidden, step_.last_rows()));
      arena_.rewind(mark);
      const KvCache::Sequence copy = cache.fork(beams_[1]);
      cache.release(beams_[2]);
      beams_[2] = copy;
    }
    for (const KvCache::Sequence beam : beams_) cache.release(beam);
  }

 private:
  Network model_;
  ThreadPool pool_;
  Arena arena_;
  const PackedBatch source_{{{4, 5, 6, 7, 8}}};

 public:
  KvCache cache;

 private:
  DecodeBatch step_;
  std::vector<KvCache::Sequence> beams_;
  std::vector<KvTable> tables_;
};

class DecodeStepTest : public testing::TestWithParam<ModelConfig> {};

TEST_P(DecodeStepTest, AllocatesNothingAfterWarmUp) {
  Beams beams(GetParam());
  beams.search(150);
  const int64_t before = allocations;
  ASSERT_GT(before, 0) << "the counter does not count";
  beams.search(150);
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(beams.cache.used_blocks(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Configs, DecodeStepTest,
    testing::Values(config_with(Family::decoder_only, Position::rope, {}),
                    config_with(Family::decoder_only, Position::alibi, {20, 0}),
                    config_with(Family::encoder_decoder, Position::sinusoidal, {}),
                    config_with(Family::encoder_decoder, Position::t5_bias, {})));

// A request takes some memory at its beginning and at its end, and none for each token: scheduling,
// the model, choosing, and the texts themselves included. (Pieces for those who stream do, texts to
// compare with stop texts, and phrases that are required.)
using EngineCase = std::tuple<Family, Position, WeightType, int>;
class EngineStepTest : public testing::TestWithParam<EngineCase> {};

TEST_P(EngineStepTest, TakesNothingForAToken) {
  const auto [family, position, type, beam] = GetParam();
  ModelConfig config = tiny_config(family);
  config.position = position, config.max_positions = 300;
  Network network(config, 3);
  if (type != WeightType::f32) {
    ThreadPool pool(1);
    const NameFilter none("");
    network = quantize(network, {type, none, pool}).network;
  }
  const Model model(std::make_shared<const Network>(std::move(network)), nullptr);
  Engine engine(model, {.threads = 1, .kv_memory_bytes = 8 << 20});
  SearchOptions search;
  search.beam = search.nbest = beam;
  search.banned_ids.push_back({config.eos_id});  // an end here and there would be a copy of a text
  const std::vector<int32_t> input{9, 8, 7};
  const auto allocations_of = [&](int64_t tokens) {
    search.max_new_tokens = tokens;
    const int64_t before = allocations;
    const Result result = engine.submit({.ids = input, .search = search}).get();
    EXPECT_EQ(result.best().new_tokens, tokens);
    while (engine.statistics().running > 0) std::this_thread::yield();
    return allocations - before;
  };
  // The fewest of some: until all tables of the cache have been those of a long text, one or the
  // other still grows.
  int64_t of_short = allocations_of(20), of_long = allocations_of(250);
  for (int i = 0; i < 10; ++i) {
    of_short = std::min(of_short, allocations_of(20));
    of_long = std::min(of_long, allocations_of(250));
  }
  ASSERT_GT(of_short, 0) << "the counter does not count";
  EXPECT_EQ(of_long, of_short);
}

INSTANTIATE_TEST_SUITE_P(
    Models, EngineStepTest,
    testing::Combine(testing::Values(Family::encoder_decoder, Family::decoder_only),
                     testing::Values(Position::sinusoidal, Position::t5_bias),
                     testing::Values(WeightType::f32, WeightType::int8), testing::Values(1, 4)),
    [](const auto& suite) {
      return std::string(name_of(std::get<0>(suite.param))) + "_" +
             std::string(name_of(std::get<1>(suite.param))) + "_" +
             (std::get<2>(suite.param) == WeightType::f32 ? "f32" : "int8") + "_beam_" +
             std::to_string(std::get<3>(suite.param));
    });

// The memory of a step is known before it runs.
TEST(DecodeStep, MeasuringPredictsThePeakExactly) {
  const Network model(config_with(Family::decoder_only, Position::t5_bias, {}), 3);
  KvCache cache(model.transformer().kv_layout(), {.memory_bytes = 1 << 20});
  DecodeBatch step(cache);
  const std::vector<int32_t> prompt(40, 5);
  ASSERT_TRUE(step.add(cache.open(), prompt));
  ASSERT_TRUE(step.add(cache.open(), {prompt.data(), 1}));
  ThreadPool pool(2);
  Arena plan = Arena::measuring();
  Ctx measure{pool, plan};
  model.transformer().decode(measure, step.batch(), step.view());
  ASSERT_GT(plan.peak_bytes(), 0u);
  Arena arena(plan.peak_bytes());
  Ctx ctx{pool, arena};
  model.transformer().decode(ctx, step.batch(), step.view());
  EXPECT_EQ(arena.peak_bytes(), plan.peak_bytes());
}

}  // namespace
}  // namespace heed
