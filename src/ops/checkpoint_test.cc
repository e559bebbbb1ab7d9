#include "ops/checkpoint.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/philox.h"
#include "ops/ops.h"

namespace heed {
namespace {

constexpr int64_t kRows = 12, kWidth = 16;
constexpr int kLayers = 6;

struct Result {
  std::vector<float> output, dx, d_memory, dw;
  size_t peak_bytes = 0;
  uint32_t site = 0;
};

std::vector<float> copy_of(const Mat& m) { return {m.data, m.data + m.size()}; }

// A gradient that arrives at the input of the tape's first op.
struct ReadGradient {
  Gradient* gradient;
  std::vector<float>* into;
  void backward(Ctx& ctx) {
    const Mat arrived = ctx.tape->arrived(ctx, *gradient);
    if (arrived.data) *into = copy_of(arrived);
  }
};

// Layers of y = x + dropout(relu(x W) W) + memory W, with or without checkpoints. `memory` and x
// are also read outside of them, so that gradients are accumulated from both.
Result run(bool checkpoints, Arena& arena) {
  ThreadPool pool(2);
  Tape tape;
  Ctx ctx{pool, arena, &tape, /*seed=*/5, /*step=*/1};
  Random random({.seed = 3});
  const auto random_values = [&](size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = 0.3f * random.normal();
    return values;
  };
  const std::vector<float> weights = random_values(kWidth * kWidth);
  const std::vector<float> x_values = random_values(kRows * kWidth),
                           memory_values = random_values(kRows * kWidth);
  std::vector<float> dw(weights.size());
  WeightGradient slot{.value = Mat(dw.data(), kWidth, kWidth)};
  const Linear layer{{ConstMat(weights.data(), kWidth, kWidth), &slot}};

  Result result;
  const auto input = [&](const std::vector<float>& values, std::vector<float>* gradient) {
    const Var v = ctx.activation(kRows, kWidth);
    if (v.value.data) std::copy(values.begin(), values.end(), v.value.data);
    tape.record(v.gradient, ReadGradient{v.gradient, gradient});
    return v;
  };
  const Var memory = input(memory_values, &result.d_memory);
  const Var x = input(x_values, &result.dx);
  const auto body = [&layer](Ctx& c, std::span<const Var> in) {
    const Var hidden = linear(c, in[0], layer, Activation::relu, 0.2f);
    const Var y = linear_add(c, in[0], hidden, layer, 0.1f);
    return residual_add(c, y, linear(c, in[1], layer));
  };
  Var y = x;
  for (int i = 0; i < kLayers; ++i) {
    const Var inputs[] = {y, memory};
    y = checkpoints ? checkpoint(ctx, inputs, body) : body(ctx, inputs);
  }
  y = residual_add(ctx, residual_add(ctx, y, memory), x);
  if (y.value.data) result.output = copy_of(y.value);
  result.site = ctx.site;
  const Mat dy = tape.target(ctx, *y.gradient).value;
  ctx.parallel(dy.size(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) dy.data[i] = 0.01f * static_cast<float>(i % 7) - 0.02f;
  });
  tape.backward(ctx);
  EXPECT_EQ(ctx.site, result.site);
  result.dw = dw;
  result.peak_bytes = arena.peak_bytes();
  return result;
}

TEST(Checkpoint, GivesTheSameBitsInLessMemory) {
  Arena ordinary_arena(size_t{1} << 20), checkpoint_arena(size_t{1} << 20);
  const Result ordinary = run(false, ordinary_arena), checkpointed = run(true, checkpoint_arena);
  EXPECT_EQ(checkpointed.output, ordinary.output);
  EXPECT_EQ(checkpointed.dx, ordinary.dx);
  EXPECT_EQ(checkpointed.d_memory, ordinary.d_memory);
  EXPECT_EQ(checkpointed.dw, ordinary.dw);
  EXPECT_EQ(checkpointed.site, ordinary.site);
  EXPECT_LT(checkpointed.peak_bytes, ordinary.peak_bytes);
}

TEST(Checkpoint, MeasuringPredictsThePeak) {
  Arena plan = Arena::measuring();
  run(true, plan);
  Arena arena(plan.peak_bytes());
  EXPECT_EQ(run(true, arena).peak_bytes, plan.peak_bytes());
}

TEST(Checkpoint, WithoutATapeTheBodyIsCalledDirectly) {
  ThreadPool pool(1);
  Arena arena(1 << 16);
  Ctx ctx{pool, arena};
  const Var x = ctx.activation(1, 1);
  int calls = 0;
  const auto body = [&calls](Ctx&, std::span<const Var> inputs) {
    ++calls;
    return inputs[0];
  };
  EXPECT_EQ(checkpoint(ctx, {&x, 1}, body).value.data, x.value.data);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace heed
