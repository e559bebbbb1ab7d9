// That answering is measured, for both families; never how fast it is.
#include <gtest/gtest.h>

#include "heed/bench.h"
#include "heed/error.h"

namespace heed {
namespace {

DecodeBenchOptions small(const char* preset) {
  DecodeBenchOptions options;
  options.preset = preset, options.requests = 3, options.length = 5, options.new_tokens = 4;
  options.threads = 1, options.seconds = 0.01;
  return options;
}

void expect_limits(const DecodeBench& bench) {
  EXPECT_EQ(bench.threads, 1);
  EXPECT_GT(bench.gemm_limit_gflops, 0);
  EXPECT_GT(bench.bandwidth_limit_gbs, 0);
  EXPECT_GT(bench.fraction_of_limit, 0);
  EXPECT_GT(bench.fraction_of_bandwidth, 0);
  EXPECT_GT(bench.peak_rss_bytes, bench.parameters * 4);
  EXPECT_LE(bench.latency_ms.p50, bench.latency_ms.p90);
  EXPECT_LE(bench.latency_ms.p90, bench.latency_ms.p99);
}

TEST(BenchTranslate, MeasuresABatch) {
  const DecodeBench bench = bench_translate(small("transformer-tiny"));
  expect_limits(bench);
  EXPECT_EQ(bench.tokens, 12);
  EXPECT_NEAR(bench.tokens_per_second, 12e3 / bench.batch_ms, 1e-6 * bench.tokens_per_second);
  EXPECT_NEAR(bench.requests_per_second, 3e3 / bench.batch_ms, 1e-6 * bench.requests_per_second);
  EXPECT_EQ(bench.prompt_ms, 0);
}

// By hand: d = 128, f = 256, vocabulary 10000, 4 + 4 layers; 2 sentences of 5 tokens, a beam of 3.
TEST(BenchTranslate, CountsOperationsAndBytes) {
  DecodeBenchOptions options = small("transformer-tiny");
  options.requests = 2, options.beam = 3, options.new_tokens = 2;
  const DecodeBench bench = bench_translate(options);
  const double d = 128, f = 256, vocabulary = 10000, layers = 4;
  const double source_weights = layers * (4 * d * d + 2 * d * f) + layers * 2 * d * d;
  const double step_weights = layers * (4 * d * d + 2 * d * d + 2 * d * f) + vocabulary * d;
  double flops = 2 * 10 * source_weights + layers * 4 * 10 * 5 * d;
  flops += 2 * 2 * step_weights + layers * 4 * 2 * (1 + 5) * d;  // the first token: a text each
  flops += 2 * 6 * step_weights + layers * 4 * 6 * (2 + 5) * d;
  EXPECT_NEAR(bench.gflops * bench.batch_ms * 1e6, flops, 1);
  const double keys = layers * 2 * d * ((2 * 1 + 2 * 5) + (6 * 2 + 2 * 5));
  EXPECT_NEAR(bench.gbs * bench.batch_ms * 1e6, 4 * (source_weights + 2 * step_weights + keys), 1);
}

TEST(BenchGenerate, TellsPromptsFromWhatFollows) {
  const DecodeBench bench = bench_generate(small("nanogpt-cpu"));
  expect_limits(bench);
  EXPECT_EQ(bench.tokens, 9);  // the first of each comes with its prompt
  EXPECT_GT(bench.prompt_ms, 0);
  EXPECT_LT(bench.prompt_ms, bench.batch_ms);
  EXPECT_NEAR(bench.prompt_tokens_per_second, 15e3 / bench.prompt_ms, 1);
  EXPECT_GT(bench.token_ms.p50, 0);
  EXPECT_LE(bench.token_ms.p50, bench.token_ms.p99);
}

TEST(BenchGenerate, WithABeamMeasuresEverythingTogether) {
  DecodeBenchOptions options = small("nanogpt-cpu");
  options.beam = 2;
  const DecodeBench bench = bench_generate(options);
  EXPECT_EQ(bench.tokens, 12);
  EXPECT_EQ(bench.prompt_ms, 0);
  EXPECT_NEAR(bench.tokens_per_second, 12e3 / bench.batch_ms, 1e-6 * bench.tokens_per_second);
}

// Narrower weights are fewer bytes to read; keys and values, and the operations, stay the same.
TEST(BenchDecode, CountsTheBytesOfTheType) {
  DecodeBenchOptions options = small("transformer-tiny");
  const auto measured = [&](const char* type) {
    options.type = type;
    return bench_translate(options);
  };
  const auto bytes = [](const DecodeBench& bench) { return bench.gbs * bench.batch_ms * 1e6; };
  const DecodeBench f32 = measured("f32"), f16 = measured("f16"), int8 = measured("int8"),
                    int4 = measured("int4");
  EXPECT_NEAR(bytes(f16) / bytes(f32), 0.5, 0.05);
  EXPECT_NEAR(bytes(int8) / bytes(f32), 0.26, 0.05);
  EXPECT_NEAR(bytes(int4) / bytes(f32), 0.15, 0.05);
  EXPECT_NEAR(int4.gflops * int4.batch_ms, f32.gflops * f32.batch_ms, 1e-6);
}

TEST(BenchDecode, RefusesWhatItCannotMeasure) {
  EXPECT_THROW(bench_translate(small("gpt2")), Error);
  EXPECT_THROW(bench_generate(small("transformer-tiny")), Error);
  EXPECT_THROW(bench_generate(small("bert-tiny")), Error);
  DecodeBenchOptions options = small("nanogpt-cpu");
  options.type = "int3";
  EXPECT_THROW(bench_generate(options), Error);
  options.type = "f32", options.length = 62;  // 64 positions, and three more tokens are run
  EXPECT_THROW(bench_generate(options), Error);
}

}  // namespace
}  // namespace heed
