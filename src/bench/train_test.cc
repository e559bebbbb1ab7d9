// That training is measured, for each kind of model; never how fast it is.
#include <gtest/gtest.h>

#include "heed/bench.h"
#include "heed/error.h"

namespace heed {
namespace {

TEST(BenchTrain, MeasuresAStepAndItsParts) {
  const TrainBench bench = bench_train({.preset = "transformer-tiny",
                                        .sequences = 3,
                                        .length = 5,
                                        .vocabulary = 100,
                                        .dropout = 0.1f,
                                        .threads = 1,
                                        .seconds = 0.01});
  EXPECT_EQ(bench.threads, 1);
  EXPECT_EQ(bench.tokens, 30);
  EXPECT_GT(bench.forward_ms, 0);
  EXPECT_GT(bench.backward_ms, 0);
  EXPECT_GT(bench.update_ms, 0);
  EXPECT_GT(bench.cpu_ms, 0);
  EXPECT_NEAR(bench.step_ms, bench.forward_ms + bench.backward_ms + bench.update_ms, 1e-9);
  EXPECT_NEAR(bench.tokens_per_second, 30e3 / bench.step_ms, 1e-6 * bench.tokens_per_second);
  EXPECT_GT(bench.fraction_of_limit, 0);
  EXPECT_GT(bench.peak_rss_bytes, bench.planned_bytes / 2);
}

// By hand for the paper's shape (as PEERS counts): per layer 4 d² for self-attention, 2 d f for the
// FFN; the decoder also 4 d² for cross-attention; 4 T² d for each attention; d V for the output.
TEST(BenchTrain, CountsTheProducts) {
  const TrainBench bench = bench_train({.preset = "transformer-tiny",
                                        .sequences = 2,
                                        .length = 8,
                                        .vocabulary = 50,
                                        .threads = 1,
                                        .seconds = 0.01});
  const double d = 128, f = 256, rows = 16, t = 8;
  const double encoder = 2 * rows * (4 * d * d + 2 * d * f) + 4 * rows * t * d;
  const double decoder = 2 * rows * (8 * d * d + 2 * d * f) + 8 * rows * t * d;
  const double flops = 3 * (4 * (encoder + decoder) + 2 * rows * d * 50);
  EXPECT_NEAR(bench.gflops * bench.step_ms * 1e6, flops, 1e-6 * flops);
}

TEST(BenchTrain, TakesEachObjective) {
  for (const auto& [preset, objective] : {std::pair{"nanogpt-cpu", "causal_lm"},
                                          {"bert-tiny", "masked_lm"},
                                          {"bert-tiny", "classification"},
                                          {"bert-tiny", "tagging"}}) {
    const TrainBench bench = bench_train({.preset = preset,
                                          .objective = objective,
                                          .sequences = 2,
                                          .length = 8,
                                          .vocabulary = 100,
                                          .threads = 1,
                                          .seconds = 0.01});
    EXPECT_GT(bench.gflops, 0) << objective;
  }
}

TEST(BenchTrain, MomentsOf16BitsTakeLess) {
  TrainBenchOptions options{.preset = "transformer-tiny",
                            .sequences = 2,
                            .length = 8,
                            .vocabulary = 100,
                            .threads = 1,
                            .seconds = 0.01};
  const TrainBench wide = bench_train(options);
  options.moments = "bf16";
  EXPECT_EQ(wide.planned_bytes - bench_train(options).planned_bytes, 4 * wide.parameters);
}

TEST(BenchTrain, RefusesWhatDoesNotFit) {
  EXPECT_THROW(bench_train({.preset = "transformer-tiny", .moments = "f64"}), Error);
  EXPECT_THROW(bench_train({.preset = "gpt3"}), Error);
  EXPECT_THROW(bench_train({.preset = "gpt2", .objective = "masked_lm"}), Error);
  EXPECT_THROW(bench_train({.preset = "nanogpt-cpu", .length = 65}), Error);
}

}  // namespace
}  // namespace heed
