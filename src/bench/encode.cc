// The speed of encoding: hidden states of a batch, as a share of the GEMM limit.
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/process_memory.h"
#include "bench/limits.h"
#include "bench/preset_bench.h"
#include "bench/row.h"
#include "bench/turns.h"
#include "heed/bench.h"
#include "model/network.h"
#include "model/packed_batch.h"
#include "train/run/trainer.h"

namespace heed {
namespace {

PackedBatch random_batch(const ModelConfig& config, const EncodeBenchOptions& options) {
  Random random({.seed = options.seed});
  std::vector<std::vector<int32_t>> sequences(static_cast<size_t>(options.sequences));
  for (std::vector<int32_t>& ids : sequences) {
    ids = bench::random_ids(random, options.length, config.vocabulary);
  }
  return PackedBatch(sequences);
}

// Two operations for each weight of the layers that a row meets, and four for each pair of
// positions and column in attention (both products, no mask taken off, as is usual).
double batch_flops(const ModelConfig& config, const EncodeBenchOptions& options) {
  const StackConfig stack = config.stack(config.first_side());
  const std::string prefix = std::string(stack.name) + ".";
  double weights = 0;
  for (const ParameterSpec& spec : declare(config)) {
    const bool product = spec.rows > 1 && spec.name.starts_with(prefix) && !spec.is_relative_bias();
    if (product) weights += static_cast<double>(spec.size());
  }
  const auto rows = static_cast<double>(options.sequences * options.length);
  const double width = static_cast<double>(stack.query_width());
  return 2 * rows * weights + 4 * rows * static_cast<double>(options.length) * width * stack.layers;
}

}  // namespace

EncodeBench bench_encode(const EncodeBenchOptions& options) {
  const ModelConfig config = bench::preset_config(options.preset, options.length);
  ThreadPool pool(options.threads);
  const Network network = bench::preset_network(config, options.seed, options.type);
  const Transformer& transformer = network.transformer();
  const PackedBatch packed = random_batch(config, options);
  const Batch batch = packed.batch();
  const auto run = [&](Ctx& ctx) { transformer.hidden(ctx, {.source = batch}); };
  Arena plan = Arena::measuring();
  Ctx measuring{pool, plan};
  run(measuring);
  Arena arena(plan.peak_bytes());

  EncodeBench result;
  bench::describe_run(config, pool, result);
  result.tokens = batch.rows();
  result.planned_bytes = static_cast<int64_t>(plan.peak_bytes());
  const auto run_once = [&] {
    arena.rewind({0});
    Ctx ctx{pool, arena};
    const Clock::time_point start = Clock::now();
    run(ctx);
    return seconds_since(start);
  };
  const double first = run_once();  // touches all memory for the first time
  std::vector<double> times, turn;
  bench::PairedShares shares;
  std::optional<bench::GemmLimit> gemm;
  bench::in_turns(
      options.seconds, first, [&] { turn.push_back(run_once()); },
      [&](double seconds) {
        if (!gemm) {
          result.peak_rss_bytes = peak_rss_bytes();  // before the limit allocates
          gemm.emplace(pool);
        }
        shares.add(turn, gemm->sample(seconds));
        times.insert(times.end(), turn.begin(), turn.end());
        turn.clear();
      });
  const double best = bench::percentile(times, 0);
  result.batch_ms = 1e3 * best;
  result.batch_ms_p50 = 1e3 * bench::percentile(times, 50);
  result.batch_ms_p90 = 1e3 * bench::percentile(times, 90);
  result.sequences_per_second = static_cast<double>(options.sequences) / best;
  bench::fill_speeds(best, batch_flops(config, options), shares, result);
  return result;
}

}  // namespace heed
