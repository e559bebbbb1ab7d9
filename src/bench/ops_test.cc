// That the measurements run and add up; never how fast anything is.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/bench.h"
#include "heed/error.h"
#include "kernels/matmul/weight_types.h"

namespace heed {
namespace {

TEST(BenchOps, MeasuresTheRowsThatTheFilterNames) {
  std::vector<std::string> announced;
  int announced_rows = 0;
  const OpsBench bench = bench_ops({.threads = 1,
                                    .seconds_per_row = 0.001,
                                    .filter = "layer_norm",
                                    .progress = [&](std::string_view row, int number, int rows) {
                                      announced.emplace_back(row);
                                      EXPECT_EQ(number, static_cast<int>(announced.size()));
                                      announced_rows = rows;
                                    }});
  EXPECT_EQ(bench.threads, 1);
  EXPECT_FALSE(bench.instruction_set.empty());
  EXPECT_GT(bench.gemm_limit_gflops, 0);
  EXPECT_GT(bench.bandwidth_limit_gbs, 0);
  EXPECT_GT(bench.update_limit_gbs, 0);
  EXPECT_GT(bench.l2_limit_gbs, 0);
  ASSERT_EQ(bench.rows.size(), announced.size());
  EXPECT_EQ(announced_rows, static_cast<int>(announced.size()));
  for (size_t i = 0; i < bench.rows.size(); ++i) {
    const OpsBenchRow& row = bench.rows[i];
    EXPECT_EQ(row.name, announced[i]);
    EXPECT_NE(row.name.find("layer_norm"), std::string::npos);
    EXPECT_FALSE(row.shape.empty());
    EXPECT_GT(row.ms, 0);
    EXPECT_GT(row.gbs, 0);
    EXPECT_GT(row.fraction_of_limit, 0);
    EXPECT_EQ(row.ratio_to_onednn, 0);
  }
}

TEST(BenchOps, ComparesGemmWithTheLibraryAlone) {
  const OpsBench bench = bench_ops(
      {.threads = 2, .seconds_per_row = 0.001, .filter = "gemm transformer-tiny projection"});
  ASSERT_EQ(bench.rows.size(), 3u);  // forward, dX, dW
  for (const OpsBenchRow& row : bench.rows) {
    EXPECT_EQ(row.limit, Limit::gemm);
    EXPECT_GT(row.ratio_to_onednn, 0) << row.name;
    EXPECT_LE(row.fraction_of_limit, 1) << row.name;
  }
}

TEST(BenchOps, ComparesFewRowsWithReadingTheWeight) {
  const OpsBench bench = bench_ops({.threads = 1,
                                    .seconds_per_row = 0.001,
                                    .filter = "matmul decoding transformer-base ffn_out"});
  ASSERT_EQ(bench.rows.size(), 1u);
  EXPECT_EQ(bench.rows[0].limit, Limit::memory);
  EXPECT_GT(bench.read_limit_gbs, 0);
  EXPECT_DOUBLE_EQ(bench.rows[0].fraction_of_limit, bench.rows[0].gbs / bench.read_limit_gbs);
}

TEST(BenchOps, MeasuresEveryWeightType) {
  for (const kernels::WeightTypeInfo& type : kernels::weight_types()) {
    const OpsBench bench = bench_ops({.threads = 1,
                                      .seconds_per_row = 0.001,
                                      .filter = std::string("packed matmul ") + type.name});
    ASSERT_EQ(bench.rows.size(), 4u);  // 1, 4, 32 and 128 rows
    EXPECT_GT(bench.rows.front().gbs, 0);
    EXPECT_GT(bench.rows.back().gflops, 0);
  }
}

// Full, causal and cached at three lengths; with a window, over rows and cached, at three.
TEST(BenchOps, MeasuresLongSequences) {
  const OpsBench bench =
      bench_ops({.threads = 2, .seconds_per_row = 0.001, .filter = "attention long"});
  ASSERT_EQ(bench.rows.size(), 15u);
  const auto flop = [&](const std::string& name, const std::string& shape) {
    for (const OpsBenchRow& row : bench.rows) {
      if (row.name == name && row.shape == shape) return row.gflops * row.ms * 1e6;
    }
    ADD_FAILURE() << "no row " << name << " " << shape;
    return 0.0;
  };
  EXPECT_NEAR(flop("attention long full forward", "16x512x8x64"), 4.0 * 16 * 512 * 512 * 512, 1e3);
  EXPECT_NEAR(flop("attention long causal forward", "4x2048x8x64"),
              4.0 * 4 * (2048 * 2049 / 2) * 512, 1e3);
  EXPECT_NEAR(flop("attention long window forward", "2x1024x8x64"),
              4.0 * 2 * (128 * 129 / 2 + 896 * 128) * 512, 1e3);
}

TEST(BenchOps, AnUnknownFilterIsAnError) {
  try {
    bench_ops({.filter = "no-such-operation"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(error.hint().find("attention"), std::string::npos) << error.hint();
  }
}

TEST(BenchOps, LimitsHaveNames) {
  EXPECT_STREQ(name(Limit::gemm), "gemm");
  EXPECT_STREQ(name(Limit::memory), "memory");
  EXPECT_STREQ(name(Limit::l2), "l2");
}

}  // namespace
}  // namespace heed
