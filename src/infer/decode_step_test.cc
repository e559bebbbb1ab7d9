// One step of decoding takes nothing from the heap: its numbers are the arena's, used again each
// step.
#include <gtest/gtest.h>

#include "base/allocation_count.h"
#include "infer/decode_batch.h"
#include "model/network.h"
#include "model/packed_batch.h"

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
      const Var memory = model_.transformer().encode(ctx, {.batch = source_.batch()});
      model_.transformer().cross_keys(ctx, memory, source_.batch(), cache.view(beams_, tables_));
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
