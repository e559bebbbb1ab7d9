#include <gtest/gtest.h>

#include "heed/bench.h"
#include "heed/error.h"

namespace heed {
namespace {

LayersBenchOptions small() {
  LayersBenchOptions options;
  options.lengths = {8, 16}, options.widths = {64};
  options.window = 2, options.sequences = 3;
  options.threads = 1, options.seconds_per_row = 0.0001;
  return options;
}

const LayersBenchRow& row_of(const LayersBench& bench, const std::string& layer, int64_t length) {
  for (const LayersBenchRow& row : bench.rows) {
    if (row.layer == layer && row.length == length) return row;
  }
  throw Error(ErrorCode::internal, "no row " + layer);
}

TEST(BenchLayers, CountsWhatEachLayerDoes) {
  const LayersBench bench = bench_layers(small());
  ASSERT_EQ(bench.rows.size(), 12u);
  for (const LayersBenchRow& row : bench.rows) {
    EXPECT_GT(row.ms, 0) << row.layer;
    EXPECT_NEAR(row.gflops, 1e3 * row.gflop / row.ms, 1e-6 * row.gflops) << row.layer;
  }
  const double n = 16, d = 64, sequences = 3;
  const auto gflop = [&](const char* layer) { return row_of(bench, layer, 16).gflop; };
  EXPECT_DOUBLE_EQ(gflop("self-attention"), 4 * sequences * n * n * d / 1e9);
  EXPECT_DOUBLE_EQ(gflop("self-attention, projections"),
                   sequences * (4 * n * n * d + 8 * n * d * d) / 1e9);
  // Two on each side and itself, but for the first and the last two.
  EXPECT_DOUBLE_EQ(gflop("restricted self-attention"), 4 * sequences * (5 * n - 6) * d / 1e9);
  EXPECT_DOUBLE_EQ(gflop("recurrent, LSTM"), 16 * sequences * n * d * d / 1e9);
  EXPECT_DOUBLE_EQ(gflop("recurrent, GRU"), 12 * sequences * n * d * d / 1e9);
  EXPECT_DOUBLE_EQ(gflop("convolution"), 6 * sequences * n * d * d / 1e9);
}

TEST(BenchLayers, KnowsStepsAndPaths) {
  const LayersBench bench = bench_layers(small());
  const auto expect = [&](const char* layer, int64_t steps, int64_t path) {
    EXPECT_EQ(row_of(bench, layer, 16).sequential_steps, steps) << layer;
    EXPECT_EQ(row_of(bench, layer, 16).path_length, path) << layer;
  };
  expect("self-attention", 1, 1);
  expect("restricted self-attention", 1, 8);  // 15 positions, two a layer
  expect("recurrent, LSTM", 16, 16);
  expect("recurrent, GRU", 16, 16);
  expect("convolution", 1, 3);  // 3, 9, 27
}

TEST(BenchLayers, DrawsALineForEachLayer) {
  const LayersBench bench = bench_layers(small());
  const std::string svg = layers_chart(bench);
  size_t lines = 0;
  for (size_t at = 0; (at = svg.find("<polyline", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 6u);
  EXPECT_NE(svg.find(">recurrent, LSTM<"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(BenchLayers, RefusesWhatIsNoLayer) {
  for (int fault = 0; fault < 4; ++fault) {
    LayersBenchOptions options = small();
    if (fault == 0) options.lengths = {};
    if (fault == 1) options.lengths = {0};
    if (fault == 2) options.widths = {int64_t{1} << 40};
    if (fault == 3) options.kernel = 0;
    EXPECT_THROW(bench_layers(options), Error) << fault;
  }
}

}  // namespace
}  // namespace heed
