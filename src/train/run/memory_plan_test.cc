#include "train/run/memory_plan.h"

#include "base/files/file_testing.h"
#include "model/presets.h"

namespace heed {
namespace {

struct Planned {
  explicit Planned(const std::string& name) : network(preset(name), 1) { network.add_gradients(); }
  MemoryPlan plan(const MemoryPlanOptions& options) {
    return plan_memory(runner, network, options);
  }
  Network network;
  ThreadPool pool{1};
  StepRunner runner{{.network = network, .pool = pool}};
};

TEST(MemoryPlan, KeepsWhatIsWantedWhereItFits) {
  Planned p("transformer-tiny");
  const MemoryPlan free = p.plan({.requested_tokens = 4096, .longest = 100});
  EXPECT_EQ(free.batch_tokens, 4096);
  EXPECT_GT(free.activation_bytes, 4096 * 128 * 4);
  EXPECT_EQ(free.weight_bytes, 4 * 4 * parameter_count(p.network.config()));
  const MemoryPlan ample =
      p.plan({.limit_bytes = 4'000'000'000, .requested_tokens = 4096, .longest = 100});
  EXPECT_EQ(ample.batch_tokens, 4096);
}

TEST(MemoryPlan, TakesFewerTokensAndUsesTheRoom) {
  Planned p("transformer-tiny");
  const int64_t limit = 300'000'000;
  const MemoryPlan plan = p.plan({.limit_bytes = limit, .requested_tokens = 16384, .longest = 100});
  EXPECT_LT(plan.batch_tokens, 16384);
  EXPECT_GT(plan.batch_tokens, 500);
  const int64_t used = plan.weight_bytes * 5 / 4 + (16 << 20) + plan.activation_bytes;
  EXPECT_LE(used, limit);
  EXPECT_GT(used, limit * 9 / 10);
}

TEST(MemoryPlan, ChangesNothingWhereTheLargestBatchFits) {
  Planned p("transformer-tiny");
  const TrainingBatch largest = shape_batch(p.network.config(), 1200, 100);
  const MemoryPlan plan = p.plan({.limit_bytes = 300'000'000,
                                  .requested_tokens = 100'000,
                                  .longest = 100,
                                  .largest = &largest});
  EXPECT_EQ(plan.batch_tokens, 100'000);
  EXPECT_LT(plan.activation_bytes, plan.room_bytes);
}

TEST(MemoryPlan, SaysWhenNothingFits) {
  Planned p("transformer-tiny");
  expect_error(ErrorCode::out_of_memory, "1000 tokens", [&] {
    p.plan({.limit_bytes = 60'000'000, .requested_tokens = 4096, .longest = 1000});
  });
  // The parts add up to what is needed: the program is one of them.
  try {
    p.plan({.limit_bytes = 1,
            .requested_tokens = 16,
            .longest = 1,
            .process_bytes = 10'000'000,
            .threads = 2});
    ADD_FAILURE() << "did not throw";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, testing::HasSubstr("--memory allows 0.0 MB"));
    // 10 MB, 16 MiB, and 768 KiB for each thread.
    EXPECT_THAT(text, testing::HasSubstr("28.4 MB for the program"));
  }
}

TEST(MemoryPlan, RunsLayersAgainWhereBatchesWouldBecomeTiny) {
  Planned p("transformer-tiny");
  MemoryPlanOptions options{.limit_bytes = 300'000'000, .requested_tokens = 4096, .longest = 100};
  options.recompute = Recompute::automatic;
  EXPECT_FALSE(p.plan(options).recompute);  // there is room enough
  options.limit_bytes = 90'000'000;
  options.recompute = Recompute::off;
  const MemoryPlan kept = p.plan(options);
  EXPECT_LT(kept.batch_tokens, 1024);
  options.recompute = Recompute::automatic;
  const MemoryPlan again = p.plan(options);
  EXPECT_TRUE(again.recompute);
  EXPECT_GT(again.batch_tokens, kept.batch_tokens);
  options.recompute = Recompute::on;
  options.limit_bytes = 0;
  EXPECT_TRUE(p.plan(options).recompute);
}

TEST(ShapeBatch, HasTheRowsOfItsBudget) {
  const TrainingBatch two = shape_batch(preset("transformer-tiny"), 1000, 30);
  EXPECT_EQ(two.rows(), 1000);
  EXPECT_EQ(two.input.sequences(), 17);
  EXPECT_EQ(two.labels.size(), 500u);
  ModelConfig c = preset("bert-tiny");
  EXPECT_EQ(shape_batch(c, 64, 64).sequences(), 1);
  c.pooler = true;
  EXPECT_EQ(shape_batch(c, 64, 16).next_sentence.size(), 4u);
}

}  // namespace
}  // namespace heed
