#include "bench/preset_bench.h"

#include <algorithm>

#include "base/check.h"
#include "heed/error.h"
#include "kernels/simd/instruction_set.h"
#include "model/presets.h"
#include "model/quantize.h"

namespace heed::bench {

ModelConfig preset_config(const std::string& name, int64_t length) {
  ModelConfig config = preset(name);
  if (config.position == Position::learned && length > config.max_positions) {
    throw Error(ErrorCode::invalid_argument,
                "length " + std::to_string(length) + " is beyond the preset's " +
                    std::to_string(config.max_positions) + " positions",
                "use a smaller --length");
  }
  config.max_positions = std::max(config.max_positions, length);
  return config;
}

namespace {

WeightType type_of(const std::string& name) {
  if (const kernels::WeightTypeInfo* type = kernels::find_weight_type(name)) return type->type;
  throw Error(ErrorCode::invalid_argument, "the type is '" + name + "'",
              "use f32, " + weight_type_choices());
}

}  // namespace

Network preset_network(const ModelConfig& config, uint64_t seed, const std::string& type) {
  // Never all of it in f32: peak memory is measured too.
  Parameters parameters(config, packed_types(config, type_of(type)));
  parameters.initialise(seed);
  return Network(hf_equivalent(config), std::move(parameters));
}

double weight_bytes(const std::string& type, const ParameterSpec& spec) {
  if (!can_be_packed(spec)) return static_cast<double>(spec.size()) * sizeof(float);
  return static_cast<double>(kernels::packed_bytes(type_of(type), spec.rows, spec.cols));
}

std::vector<int32_t> random_ids(Random& random, int64_t count, int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary))));
  }
  return ids;
}

void describe_run(const ModelConfig& config, const ThreadPool& pool, PresetBench& result) {
  result.threads = pool.threads();
  result.instruction_set = kernels::instruction_set();
  result.parameters = parameter_count(config);
}

void fill_speeds(double seconds, double flops, const PairedShares& gemm, PresetBench& result) {
  result.tokens_per_second = static_cast<double>(result.tokens) / seconds;
  result.gflops = flops / seconds / 1e9;
  result.gemm_limit_gflops = gemm.best_limit();
  result.fraction_of_limit = gemm.share(flops);
}

double percentile(std::vector<double>& values, size_t p) {
  HEED_CHECK(!values.empty() && p <= 100, "percentile of nothing");
  std::ranges::sort(values);
  return values[(values.size() - 1) * p / 100];
}

Percentiles percentiles(std::vector<double>& values) {
  return {percentile(values, 50), percentile(values, 90), percentile(values, 99)};
}

}  // namespace heed::bench
