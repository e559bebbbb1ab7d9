// The speed of reading texts: hidden states of a batch, next to the GEMM limit.
#include <algorithm>
#include <vector>

#include "bench/limits.h"
#include "bench/row.h"
#include "heed/bench.h"
#include "heed/error.h"
#include "kernels/instruction_set.h"
#include "model/network.h"
#include "model/packed_batch.h"
#include "model/presets.h"
#include "train/trainer.h"

namespace heed {
namespace {

PackedBatch random_batch(const ModelConfig& config, const EncodeBenchOptions& options) {
  Random random({.seed = options.seed});
  std::vector<std::vector<int32_t>> sequences(static_cast<size_t>(options.sequences));
  for (std::vector<int32_t>& ids : sequences) {
    for (int64_t i = 0; i < options.length; ++i) {
      ids.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(config.vocabulary))));
    }
  }
  return PackedBatch(sequences);
}

// Two operations for each weight of the layers that a row meets, and four for each pair of
// positions and column in attention (both products, no mask taken off, as is usual).
double batch_flops(const ModelConfig& config, const EncodeBenchOptions& options) {
  const std::string stack =
      config.family == Family::decoder_only ? std::string("decoder.") : std::string("encoder.");
  const int layers =
      config.family == Family::decoder_only ? config.decoder_layers : config.encoder_layers;
  double weights = 0;
  for (const ParameterSpec& spec : declare(config)) {
    const bool product =
        spec.rows > 1 && spec.name.starts_with(stack) && !spec.name.ends_with("t5_bias");
    if (product) weights += static_cast<double>(spec.size());
  }
  const auto rows = static_cast<double>(options.sequences * options.length);
  const double width = static_cast<double>(config.heads) * config.head_dimension();
  return 2 * rows * weights + 4 * rows * static_cast<double>(options.length) * width * layers;
}

}  // namespace

EncodeBench bench_encode(const EncodeBenchOptions& options) {
  ModelConfig config = preset(options.preset);
  if (config.position == Position::learned && options.length > config.max_positions) {
    throw Error(ErrorCode::invalid_argument,
                "length " + std::to_string(options.length) + " is beyond the preset's " +
                    std::to_string(config.max_positions) + " positions",
                "use a smaller --length");
  }
  config.max_positions = std::max(config.max_positions, options.length);
  ThreadPool pool(options.threads);
  const Network network(config, options.seed);
  const Transformer& transformer = network.transformer();
  const PackedBatch packed = random_batch(config, options);
  const Batch batch = packed.batch();
  const auto run = [&](Ctx& ctx) {
    if (config.family == Family::decoder_only) {
      transformer.decode(ctx, batch);
    } else {
      transformer.encode(ctx, {.batch = batch});
    }
  };
  Arena plan = Arena::measuring();
  Ctx measuring{pool, plan};
  run(measuring);
  Arena arena(plan.peak_bytes());

  EncodeBench result;
  result.threads = pool.threads();
  result.instruction_set = kernels::instruction_set();
  result.parameters = parameter_count(config);
  result.tokens = batch.rows();
  result.planned_bytes = static_cast<int64_t>(plan.peak_bytes());
  std::vector<double> times;
  // The limit is measured in the middle: other programs on the machine come and go.
  for (int half = 0; half < 2; ++half) {
    bench::best_seconds(options.seconds / 2, [&] {
      arena.rewind({0});
      Ctx ctx{pool, arena};
      const bench::Clock::time_point start = bench::Clock::now();
      run(ctx);
      times.push_back(bench::seconds_since(start));
      return times.back();
    });
    if (half > 0) continue;
    result.peak_rss_bytes = peak_rss_bytes();  // before the limit's own matrices come
    result.gemm_limit_gflops = bench::measure_gemm_gflops(pool, options.seconds / 20);
  }
  std::ranges::sort(times);
  const auto percentile = [&](size_t p) { return 1e3 * times[(times.size() - 1) * p / 100]; };
  result.batch_ms = percentile(0);
  result.batch_ms_p50 = percentile(50);
  result.batch_ms_p90 = percentile(90);
  result.tokens_per_second = static_cast<double>(result.tokens) / times.front();
  result.sequences_per_second = static_cast<double>(options.sequences) / times.front();
  result.gflops = batch_flops(config, options) / times.front() / 1e9;
  result.fraction_of_limit = result.gflops / result.gemm_limit_gflops;
  return result;
}

}  // namespace heed
