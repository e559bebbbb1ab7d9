#include "train/ranks/gradient_exchange.h"

#include <gmock/gmock.h>

#include "train/run/step.h"
#include "train/run/task_testing.h"

namespace heed {
namespace {

// Models in which weights are shared in different ways.
std::vector<ModelConfig> configs() {
  ModelConfig tied = toy_config(Family::encoder_decoder);  // one matrix is read at three places
  ModelConfig untied = tied;
  untied.tying = Tying::none;
  ModelConfig t5 = tied;  // and so is the table of positions, by all layers
  t5.position = Position::t5_bias;
  ModelConfig learned = toy_config(Family::decoder_only);
  return {tied, untied, t5, learned, toy_config(Family::encoder_only)};
}

struct Sent {
  int64_t begin;
  std::vector<float> numbers;  // as they were when they went out
};

TEST(GradientExchange, SendsEverythingOnceFromTheEndAndOnlyWhatIsFinal) {
  ThreadPool pool(1);
  for (const ModelConfig& config : configs()) {
    SCOPED_TRACE(name_of(config.family));
    Network network(config, 3);
    network.add_gradients();
    Parameters& p = network.parameters();
    const TrainingBatch batch = toy_batch(config.family, ToyTask::copy, 1, 4);
    const LabelCounts counts = count_labels(batch);
    StepRunner runner({.network = network, .pool = pool});

    std::vector<Sent> sent;
    GradientExchange exchange(
        p,
        [&](std::span<float> part) {
          sent.push_back({part.data() - p.all_gradients().data(), {part.begin(), part.end()}});
        },
        /*bucket_floats=*/1000);
    ASSERT_GT(exchange.buckets(), 3u);
    GradientStep gradients(p);
    runner.train(gradients, batch, counts, {.seed = 1});  // a batch before the last one
    EXPECT_TRUE(sent.empty());
    runner.train(gradients, batch, counts, {.seed = 1}, {.exchange = &exchange});
    // Backward itself has sent all.
    EXPECT_EQ(exchange.sent(), exchange.buckets());
    exchange.finish();
    ASSERT_EQ(sent.size(), exchange.buckets());

    int64_t end = std::ssize(p.all_gradients());
    for (const Sent& part : sent) {
      EXPECT_EQ(part.begin + std::ssize(part.numbers), end);
      end = part.begin;
      const std::span<const float> now =
          p.all_gradients().subspan(static_cast<size_t>(part.begin), part.numbers.size());
      EXPECT_TRUE(std::ranges::equal(part.numbers, now)) << "changed after it was sent";
    }
    EXPECT_EQ(end, 0);
  }
}

TEST(GradientExchange, SendsWhileBackwardIsAtWork) {
  ThreadPool pool(1);
  Network network(toy_config(Family::decoder_only), 3);
  network.add_gradients();
  StepRunner runner({.network = network, .pool = pool});
  const TrainingBatch batch = toy_batch(Family::decoder_only, ToyTask::copy, 1, 4);
  // When the last layer's gradients go out, the first layer's have not been written.
  Parameters& p = network.parameters();
  const WeightGradient* first_layer = p.weight("decoder.0.ffn.out.weight").gradient;
  std::vector<bool> first_layer_written;
  GradientExchange exchange(
      p, [&](std::span<float>) { first_layer_written.push_back(first_layer->written); }, 1000);
  GradientStep gradients(p);
  runner.train(gradients, batch, count_labels(batch), {.seed = 1}, {.exchange = &exchange});
  EXPECT_FALSE(first_layer_written.front());
  EXPECT_TRUE(first_layer_written.back());
  EXPECT_GE(std::ranges::count(first_layer_written, false), 3);
}

TEST(GradientExchange, WhatABatchDoesNotReachIsZero) {
  ThreadPool pool(1);
  // Nothing is asked, so no weight gets a gradient on this rank.
  TrainingBatch batch = toy_batch(Family::decoder_only, ToyTask::copy, 1, 4);
  std::ranges::fill(batch.labels, kIgnoreLabel);
  Network network(toy_config(Family::decoder_only), 3);
  network.add_gradients();
  Parameters& p = network.parameters();
  for (WeightGradient& slot : p.gradients()) slot.value.data[0] = 5;  // of an earlier step
  StepRunner runner({.network = network, .pool = pool});
  double sum = 0;
  int64_t floats = 0;
  GradientExchange exchange(p, [&](std::span<float> part) {
    for (float& number : part) {
      sum += std::abs(number);
      number = 1;  // what the other ranks had
    }
    floats += std::ssize(part);
  });
  GradientStep gradients(p);
  runner.train(gradients, batch, {.labels = 7}, {.seed = 1}, {.exchange = &exchange});
  exchange.finish();
  gradients.finish();
  EXPECT_EQ(floats, std::ssize(p.all_gradients()));
  EXPECT_EQ(sum, 0);
  for (const WeightGradient& slot : p.gradients()) EXPECT_EQ(slot.value.data[0], 1);
}

}  // namespace
}  // namespace heed
