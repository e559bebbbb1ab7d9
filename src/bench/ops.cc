#include <algorithm>
#include <set>

#include "base/check.h"
#include "bench/limits.h"
#include "bench/row.h"
#include "heed/bench.h"
#include "kernels/simd/instruction_set.h"

namespace heed {
namespace {

using bench::Limits;
using bench::Row;
using bench::SpeedSizes;

SpeedSizes sizes_for(int threads) {
  const auto float_bytes = static_cast<int64_t>(sizeof(float));
  return {
      .memory_floats = bench::far_bytes() / float_bytes,
      .l2_floats = std::min(threads, available_cpus()) * bench::l2_cache_bytes() / 2 / float_bytes,
  };
}

std::vector<Row> matching_rows(int threads, const std::string& filter) {
  std::vector<Row> rows, matching;
  add_gemm_rows(rows);
  add_matmul_rows(rows);
  const SpeedSizes sizes = sizes_for(threads);
  add_op_rows(sizes, rows);
  add_attention_rows(rows);
  add_kernel_rows(sizes, rows);
  add_packed_rows(rows);
  std::set<std::string> first_words;
  for (Row& row : rows) {
    first_words.insert(row.name.substr(0, row.name.find(' ')));
    if (row.name.find(filter) != std::string::npos) matching.push_back(std::move(row));
  }
  if (matching.empty()) {
    std::string names;
    for (const std::string& word : first_words) names += (names.empty() ? "" : ", ") + word;
    throw Error(ErrorCode::invalid_argument, "no row's name contains '" + filter + "'",
                "the rows are those of " + names);
  }
  return matching;
}

OpsBenchRow measured(const Row& row, bench::Bench& bench) {
  const bench::Time time = row.measure(bench);
  return {.name = row.name,
          .shape = row.shape,
          .ms = 1e3 * time.seconds,
          .gflops = row.cost.flops / time.seconds / 1e9,
          .gbs = row.cost.bytes / time.seconds / 1e9,
          .limit = row.limit,
          .fraction_of_limit = time.fraction_of_limit,
          .ratio_to_onednn = time.onednn_seconds / time.seconds};
}

double memory_limit_gbs(bench::Traffic traffic, const Limits& limits) {
  switch (traffic) {
    case bench::Traffic::copy:
      return limits.memory_gbs;
    case bench::Traffic::update:
      return limits.memory_update_gbs;
    case bench::Traffic::read:
      return limits.memory_read_gbs;
  }
  return 0;
}

double fraction_of_limit(const OpsBenchRow& row, bench::Traffic traffic, const Limits& limits) {
  switch (row.limit) {
    case Limit::gemm:
      return row.gflops / limits.gemm_gflops;
    case Limit::memory:
      return row.gbs / memory_limit_gbs(traffic, limits);
    case Limit::l2:
      return row.gbs / limits.l2_gbs;
  }
  return 0;
}

}  // namespace

const char* name(Limit limit) {
  switch (limit) {
    case Limit::gemm:
      return "gemm";
    case Limit::memory:
      return "memory";
    case Limit::l2:
      return "l2";
  }
  return "unknown";
}

OpsBench bench_ops(const OpsBenchOptions& options) {
  ThreadPool pool(options.threads);
  const std::vector<Row> rows = matching_rows(pool.threads(), options.filter);
  OpsBench result;
  result.threads = pool.threads();
  result.instruction_set = kernels::instruction_set();

  // The limits are measured before and after, because the load of the machine changes.
  bench::Bench bench{pool, options.seconds_per_row, options.seed};
  Limits limits = bench::measure_limits(pool, bench.seconds);
  for (const Row& row : rows) {
    if (options.progress) {
      options.progress(row.name, static_cast<int>(result.rows.size()) + 1,
                       static_cast<int>(rows.size()));
    }
    result.rows.push_back(measured(row, bench));
    if (result.rows.back().ratio_to_onednn > 0) {  // a GEMM, and perhaps the best one
      limits.gemm_gflops = std::max(limits.gemm_gflops, result.rows.back().gflops);
    }
  }
  limits = better_of(limits, bench::measure_limits(pool, bench.seconds));

  for (size_t i = 0; i < rows.size(); ++i) {
    OpsBenchRow& row = result.rows[i];
    if (row.fraction_of_limit > 0) continue;
    row.fraction_of_limit = fraction_of_limit(row, rows[i].traffic, limits);
  }
  result.gemm_limit_gflops = limits.gemm_gflops;
  result.bandwidth_limit_gbs = limits.memory_gbs;
  result.update_limit_gbs = limits.memory_update_gbs;
  result.read_limit_gbs = limits.memory_read_gbs;
  result.l2_limit_gbs = limits.l2_gbs;
  return result;
}

}  // namespace heed
