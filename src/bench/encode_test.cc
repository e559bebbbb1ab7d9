// That encoding is measured, for each family; never how fast it is.
#include <gtest/gtest.h>

#include "heed/bench.h"
#include "heed/error.h"

namespace heed {
namespace {

TEST(BenchEncode, MeasuresABatch) {
  const EncodeBench bench = bench_encode(
      {.preset = "bert-tiny", .sequences = 3, .length = 5, .threads = 1, .seconds = 0.01});
  EXPECT_EQ(bench.threads, 1);
  EXPECT_EQ(bench.tokens, 15);
  EXPECT_GT(bench.batch_ms, 0);
  EXPECT_LE(bench.batch_ms, bench.batch_ms_p50);
  EXPECT_LE(bench.batch_ms_p50, bench.batch_ms_p90);
  EXPECT_NEAR(bench.tokens_per_second, 15e3 / bench.batch_ms, 1e-6 * bench.tokens_per_second);
  EXPECT_GT(bench.fraction_of_limit, 0);
  EXPECT_GT(bench.peak_rss_bytes, bench.planned_bytes);
}

// By hand: in each of two layers 4 d² for attention's projections and 2 d f for the FFN, two
// operations each; and 4 T² d for each sequence's attention. d = 128, f = 512.
TEST(BenchEncode, CountsTheProducts) {
  const EncodeBench bench = bench_encode(
      {.preset = "bert-tiny", .sequences = 2, .length = 8, .threads = 1, .seconds = 0.01});
  const double products = 2 * 16.0 * 2 * (4 * 128 * 128 + 2 * 128 * 512);
  const double attention = 2 * 2 * 4.0 * 8 * 8 * 128;
  EXPECT_NEAR(bench.gflops * bench.batch_ms * 1e6, products + attention, 1);
}

TEST(BenchEncode, RunsOtherFamiliesAndRefusesTooLongTexts) {
  for (const char* preset : {"transformer-tiny", "nanogpt-cpu"}) {
    EXPECT_GT(bench_encode(
                  {.preset = preset, .sequences = 1, .length = 4, .threads = 1, .seconds = 0.001})
                  .gflops,
              0);
  }
  EXPECT_THROW(bench_encode({.preset = "bert-tiny", .length = 513}), Error);
}

}  // namespace
}  // namespace heed
