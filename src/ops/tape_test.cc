#include "ops/tape.h"

#include <gtest/gtest.h>

#include <vector>

#include "ops/ops.h"

namespace heed {
namespace {

class TapeTest : public testing::Test {
 protected:
  Var input(int64_t rows, int64_t cols) {
    Var x = ctx_.activation(rows, cols);
    std::fill_n(x.value.data, x.value.size(), 1.0f);
    return x;
  }
  // What a loss would do: puts `value` into every element of the gradient.
  void seed(const Var& y, float value) {
    const GradientTarget target = tape_.target(ctx_, *y.gradient);
    std::fill_n(target.value.data, target.value.size(), value);
  }

  ThreadPool pool_{2};
  Arena arena_{1 << 20};
  Tape tape_;
  Ctx ctx_{pool_, arena_, &tape_};
};

// A record that writes down when it ran.
struct Noting {
  std::vector<int>* order;
  int number;
  void backward(Ctx&) { order->push_back(number); }
};

TEST_F(TapeTest, RunsRecordsInReverseAndOnlyThoseThatMatter) {
  std::vector<int> order;
  const Var used = input(1, 1), unused = input(1, 1);
  tape_.record(used.gradient, Noting{&order, 1});
  tape_.record(unused.gradient, Noting{&order, 2});
  tape_.record(nullptr, Noting{&order, 3});
  seed(used, 1);
  tape_.backward(ctx_);
  EXPECT_EQ(order, (std::vector<int>{3, 1}));
  order.clear();
  tape_.backward(ctx_);  // the tape forgot them
  EXPECT_TRUE(order.empty());
}

TEST_F(TapeTest, AddsUpWhatSeveralConsumersContribute) {
  const Var x = input(3, 5);
  struct Reader {
    Gradient* x;
    float* seen;
    void backward(Ctx& ctx) { *seen = ctx.tape->arrived(ctx, *x).row(2)[4]; }
  };
  float seen = 0;
  tape_.record(x.gradient, Reader{x.gradient, &seen});
  const Var y = residual_add(ctx_, x, scale(ctx_, residual_add(ctx_, x, input(3, 5)), 2));
  seed(y, 10);
  tape_.backward(ctx_);
  EXPECT_FLOAT_EQ(seen, 10 + 2 * 10);
}

TEST_F(TapeTest, TheResidualStreamHandsItsGradientOn) {
  const Var x = input(16, 64);
  Var y = x;
  for (int i = 0; i < 50; ++i) y = residual_add(ctx_, y, input(16, 64));
  seed(y, 1);
  const size_t before = arena_.used_bytes();
  tape_.backward(ctx_);
  EXPECT_LE(arena_.used_bytes() - before, 51 * 16 * 64 * sizeof(float))
      << "each branch keeps its gradient; the residual stream must not add more";
}

TEST_F(TapeTest, SlicesOfASplitMatrixAreOneGradientAndMissingOnesAreZero) {
  const Var x = input(2, 6);
  struct Reader {
    Gradient* x;
    std::vector<float>* seen;
    void backward(Ctx& ctx) {
      const Mat g = ctx.tape->arrived(ctx, *x);
      seen->assign(g.data, g.data + g.size());
    }
  };
  std::vector<float> seen;
  tape_.record(x.gradient, Reader{x.gradient, &seen});
  const auto [a, b, c] = split<3>(ctx_, x, {1, 2, 3});
  for (const Var& slice : {a, c}) {
    const GradientTarget target = tape_.target(ctx_, *slice.gradient);
    EXPECT_FALSE(target.accumulate);
    for (int64_t r = 0; r < 2; ++r) std::fill_n(target.value.row(r), target.value.cols, 7.0f);
  }
  tape_.backward(ctx_);
  EXPECT_EQ(seen, (std::vector<float>{7, 0, 0, 7, 7, 7, 7, 0, 0, 7, 7, 7}));
}

TEST_F(TapeTest, RefusesAMatrixUsedBesideItsSlices) {
  const Var x = input(2, 4);
  const auto [a, b] = split<2>(ctx_, x, {2, 2});
  const GradientTarget part = tape_.target(ctx_, *a.gradient);
  for (int64_t r = 0; r < 2; ++r) std::fill_n(part.value.row(r), 2, 1.0f);
  seed(x, 1);
  EXPECT_THROW(tape_.backward(ctx_), Error);
}

TEST_F(TapeTest, AnInPlaceOpLeavesWhatBackwardNeeds) {
  const float one = 1;
  const Weight w{ConstMat(&one, 1, 1)};
  const Var y = linear(ctx_, input(4, 1), {w}, Activation::relu);
  ASSERT_TRUE(value_is_kept(y));
  const Var z = scale(ctx_, y, 3);
  EXPECT_NE(z.value.data, y.value.data);
  EXPECT_EQ(y.value.data[0], 1);
  EXPECT_EQ(z.value.data[0], 3);
}

// An input that an earlier consumer will read again in its backward is not overwritten either.
TEST_F(TapeTest, AnInPlaceOpLeavesWhatAnEarlierConsumerNeeds) {
  const float one = 1;
  const Weight w{ConstMat(&one, 1, 1)};
  const Var h = input(4, 1);
  linear(ctx_, h, {w});
  EXPECT_NE(scale(ctx_, h, 2).value.data, h.value.data);
  EXPECT_EQ(h.value.data[0], 1);
}

// A step that runs out of memory anywhere, and the next one on the same tape and arena.
TEST_F(TapeTest, CanBeUsedAgainAfterAFailedStep) {
  std::vector<float> weight(64 * 64, 0.01f), gradient(64 * 64);
  WeightGradient slot{Mat(gradient.data(), 64, 64)};
  const Linear layer{{ConstMat(weight.data(), 64, 64), &slot}};
  const auto step = [&](Ctx& ctx) {
    slot.written = false;
    Var x = ctx.activation(32, 64);
    if (!ctx.measuring()) std::fill_n(x.value.data, x.value.size(), 0.5f);
    const std::vector<int32_t> labels(32, 3);
    const Var y = linear(ctx, linear(ctx, x, layer, Activation::gelu), layer);
    vocabulary_cross_entropy(ctx, y, layer, labels, {});
    ctx.tape->backward(ctx);
  };
  step(ctx_);
  const std::vector<float> expected = gradient;
  Arena plan = Arena::measuring();
  Tape tape;
  Ctx planning{pool_, plan, &tape};
  step(planning);
  for (size_t bytes = 64; bytes < plan.peak_bytes(); bytes += plan.peak_bytes() / 40) {
    Arena small(bytes);
    Ctx failing{pool_, small, &tape};
    EXPECT_THROW(step(failing), Error);
    tape.clear();
    Arena enough(plan.peak_bytes());
    Ctx fine{pool_, enough, &tape};
    step(fine);
    EXPECT_EQ(gradient, expected) << "after failing in " << bytes << " bytes";
  }
}

TEST_F(TapeTest, SaysSoWhenItsArenaWasRewoundUnderIt) {
  const Arena::Mark mark = arena_.mark();
  const Var x = input(4, 4);
  seed(x, 1);
  arena_.rewind(mark);
  EXPECT_THROW(tape_.take_buffer(arena_, 16), Error);
  tape_.clear();
  EXPECT_NO_THROW(tape_.take_buffer(arena_, 16));
}

// Activations made with a tape may go into a context that has none.
TEST_F(TapeTest, WhatWasTrainedCanBeUsedInInference) {
  const Var x = input(2, 4);
  Ctx inference{pool_, arena_};
  EXPECT_NO_THROW(scale(inference, x, 2));
  const int32_t rows[] = {1};
  EXPECT_NO_THROW(take_rows(inference, x, rows));
}

TEST(Inference, RecordsNothingAndWorksInPlace) {
  ThreadPool pool(1);
  Arena arena(1 << 16);
  Ctx ctx{pool, arena};
  const Var x = ctx.activation(2, 2);
  std::fill_n(x.value.data, 4, 1.0f);
  EXPECT_EQ(x.gradient, nullptr);
  EXPECT_EQ(dropout(ctx, x, 0.5f).value.data[0], 1) << "dropout is for training";
  EXPECT_EQ(scale(ctx, x, 2).value.data, x.value.data);
}

TEST_F(TapeTest, TheNewestBuffersGoBackToTheArena) {
  const int first = tape_.take_buffer(arena_, 1000);
  const size_t used = arena_.used_bytes();
  const int second = tape_.take_buffer(arena_, 5000), third = tape_.take_buffer(arena_, 300);
  tape_.give_buffer(arena_, second);
  EXPECT_GT(arena_.used_bytes(), used);  // the third is behind it
  tape_.give_buffer(arena_, third);
  EXPECT_EQ(arena_.used_bytes(), used);
  // In their place, of another size.
  const int large = tape_.take_buffer(arena_, 20'000);
  EXPECT_EQ(tape_.buffer(large), tape_.buffer(first) + 1008);
  // What has something else behind it stays with the tape.
  ctx_.matrix(1, 1);
  tape_.give_buffer(arena_, large);
  const size_t kept = arena_.used_bytes();
  EXPECT_EQ(tape_.take_buffer(arena_, 19'000), large);
  EXPECT_EQ(arena_.used_bytes(), kept);
}

}  // namespace
}  // namespace heed
