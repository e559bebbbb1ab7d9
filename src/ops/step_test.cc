// A whole training step: the same for any number of threads, in planned memory, without the heap.
#include <gtest/gtest.h>

#include <cstring>

#include "base/allocation_count_testing.h"
#include "ops/table/torch_transformer_testing.h"

namespace heed {
namespace {

// Sequences of different lengths, long enough that matmuls are split into blocks.
class Problem {
 public:
  explicit Problem(const TorchTransformer::Config& config) : config_(config) {
    Random random({.seed = 5});
    std::vector<std::vector<int32_t>> sources, targets, labels;
    for (int s = 0; s < 24; ++s) {
      sources.push_back(sentence(random, 3 + random.below(40)));
      targets.push_back(sentence(random, 3 + random.below(40)));
      labels.push_back(sentence(random, targets.back().size()));
    }
    source_ = std::make_unique<PackedIds>(sources);
    target_ = std::make_unique<PackedIds>(targets);
    labels_ = std::make_unique<PackedIds>(labels);
  }

  TorchTransformer model() const { return {config_, TorchTransformer::random_weights(config_, 3)}; }
  const Batch source() const { return source_->batch(); }
  const Batch target() const { return target_->batch(); }

  double train_step(TorchTransformer& model, Ctx& ctx) const {
    model.begin_step();
    const LossSum loss = model.loss(ctx, source(), target(), labels_->tokens(), 0.1f);
    ctx.tape->backward(ctx);
    if (!ctx.measuring()) {
      model.adam(ctx.pool, {.learning_rate = 1e-3f,
                            .beta1 = 0.9f,
                            .beta2 = 0.98f,
                            .eps = 1e-9f,
                            .weight_decay = 0,
                            .l2 = 0,
                            .bias_correction1 = 1,
                            .bias_correction2 = 1,
                            .gradient_scale = 1});
    }
    return loss.sum;
  }

 private:
  std::vector<int32_t> sentence(Random& random, size_t length) const {
    std::vector<int32_t> ids(length);
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(random.below(static_cast<uint64_t>(config_.vocabulary)));
    }
    return ids;
  }

  TorchTransformer::Config config_;
  std::unique_ptr<PackedIds> source_, target_, labels_;
};

TorchTransformer::Config config_with_dropout() {
  return {.width = 64,
          .ffn = 256,
          .vocabulary = 500,
          .heads = 4,
          .layers = 2,
          .pre_norm = true,
          .dropout = 0.1f,
          .attention_dropout = 0.1f};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Step, TrainingIsTheSameForAnyNumberOfThreadsBitForBit) {
  const Problem problem(config_with_dropout());
  const auto train = [&](int threads, TorchTransformer& model) {
    ThreadPool pool(threads);
    Arena arena(256 << 20);
    Tape tape;
    std::vector<double> losses;
    for (uint32_t step = 1; step <= 4; ++step) {
      const Arena::Mark mark = arena.mark();
      Ctx ctx{pool, arena, &tape, /*seed=*/9, step};
      losses.push_back(problem.train_step(model, ctx));
      arena.rewind(mark);
    }
    return losses;
  };
  TorchTransformer one = problem.model();
  const auto expected = train(1, one);
  EXPECT_LT(expected.back(), expected.front());
  for (const int threads : {2, 3}) {
    TorchTransformer model = problem.model();
    EXPECT_EQ(train(threads, model), expected) << threads << " threads";
    for (const std::string& name : one.names()) {
      EXPECT_TRUE(same_bits(model.value(name), one.value(name)))
          << name << ", " << threads << " threads";
    }
  }
}

TEST(Step, InferenceIsTheSameForAnyNumberOfThreadsBitForBit) {
  const Problem problem(config_with_dropout());
  const TorchTransformer model = problem.model();
  const auto logits = [&](int threads) {
    ThreadPool pool(threads);
    Arena arena(256 << 20);
    Ctx ctx{pool, arena};
    const Var memory = model.encode(ctx, problem.source());
    const Var y = model.logits(ctx, model.decode(ctx, problem.target(), memory, problem.source()));
    return std::vector<float>(y.value.data, y.value.data + y.value.size());
  };
  const auto expected = logits(1);
  EXPECT_TRUE(same_bits(logits(2), expected));
  EXPECT_TRUE(same_bits(logits(3), expected));
}

TEST(Step, AnotherSeedOrStepDropsOtherUnits) {
  const Problem problem(config_with_dropout());
  const auto loss = [&](uint64_t seed, uint32_t step) {
    TorchTransformer model = problem.model();
    ThreadPool pool(2);
    Arena arena(256 << 20);
    Tape tape;
    Ctx ctx{pool, arena, &tape, seed, step};
    return problem.train_step(model, ctx);
  };
  EXPECT_EQ(loss(1, 1), loss(1, 1));
  EXPECT_NE(loss(1, 1), loss(2, 1));
  EXPECT_NE(loss(1, 1), loss(1, 2));
}

TEST(Step, MeasuringPredictsThePeakExactly) {
  const Problem problem(config_with_dropout());
  TorchTransformer model = problem.model();
  ThreadPool pool(2);
  Tape tape;
  Arena plan = Arena::measuring();
  Ctx measure{pool, plan, &tape};
  problem.train_step(model, measure);
  ASSERT_GT(plan.peak_bytes(), 0u);

  Arena arena(plan.peak_bytes());
  Ctx ctx{pool, arena, &tape};
  EXPECT_GT(problem.train_step(model, ctx), 0);
  EXPECT_EQ(arena.peak_bytes(), plan.peak_bytes());

  Arena too_small(plan.peak_bytes() - 64);
  Tape second;
  Ctx short_of_memory{pool, too_small, &second};
  EXPECT_THROW(problem.train_step(model, short_of_memory), Error);
}

TEST(Step, AllocatesNothingAfterWarmUp) {
  const Problem problem(config_with_dropout());
  TorchTransformer model = problem.model();
  ThreadPool pool(2);
  Arena arena(256 << 20);
  Tape tape;
  const auto step = [&](uint32_t number) {
    const Arena::Mark mark = arena.mark();
    Ctx ctx{pool, arena, &tape, 1, number};
    problem.train_step(model, ctx);
    arena.rewind(mark);
  };
  step(1);
  const int64_t before = allocations;
  ASSERT_GT(before, 0) << "the counter does not count";
  for (uint32_t i = 2; i < 6; ++i) step(i);
  EXPECT_EQ(allocations - before, 0);
}

TEST(Step, InferenceAllocatesNothingAfterWarmUp) {
  const Problem problem(config_with_dropout());
  const TorchTransformer model = problem.model();
  ThreadPool pool(2);
  Arena arena(256 << 20);
  const auto run = [&] {
    const Arena::Mark mark = arena.mark();
    Ctx ctx{pool, arena};
    const Var memory = model.encode(ctx, problem.source());
    model.logits(ctx, model.decode(ctx, problem.target(), memory, problem.source()));
    arena.rewind(mark);
  };
  run();
  const int64_t before = allocations;
  run();
  EXPECT_EQ(allocations - before, 0);
}

}  // namespace
}  // namespace heed
