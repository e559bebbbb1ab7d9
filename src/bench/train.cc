// The speed of whole training steps: forward, backward and update, as a share of the GEMM limit.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/process_memory.h"
#include "bench/limits.h"
#include "bench/preset_bench.h"
#include "bench/row.h"
#include "bench/turns.h"
#include "heed/bench.h"
#include "heed/error.h"
#include "train/optimizer/optimizer.h"
#include "train/run/step.h"
#include "train/run/trainer.h"

namespace heed {
namespace {

// Of all threads of this process.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Dropout as in PyTorch's Transformer: residual branches, attention, activations, embeddings.
void set_dropout(float p, ModelConfig& config) {
  config.dropout = config.attention_dropout = p;
  config.activation_dropout = config.embedding_dropout = p;
}

Head head_of(const std::string& objective, const ModelConfig& config) {
  const bool encoder = config.family == Family::encoder_only;
  if (objective.empty()) return config.head;
  if (objective == "translation" && config.family == Family::encoder_decoder) {
    return Head::language_model;
  }
  if (objective == "causal_lm" && config.family == Family::decoder_only) {
    return Head::language_model;
  }
  if (objective == "masked_lm" && encoder) return Head::masked_lm;
  if (objective == "classification" && config.family != Family::encoder_decoder) {
    return Head::classifier;
  }
  if (objective == "tagging" && config.family != Family::encoder_decoder) {
    return Head::token_classifier;
  }
  throw Error(
      ErrorCode::invalid_argument,
      "objective '" + objective + "' is not for " + std::string(name_of(config.family)) + " models",
      "translation, causal_lm, masked_lm, classification or tagging, as the preset allows");
}

MomentType moments_of(const std::string& name) {
  if (const auto type = from_name<MomentType>(name)) return *type;
  throw Error(ErrorCode::invalid_argument, "no moments of type '" + name + "'",
              "choose " + choices_of<MomentType>());
}

ModelConfig config_of(const TrainBenchOptions& options) {
  ModelConfig config = bench::preset_config(options.preset, options.length);
  config.head = head_of(options.objective, config);
  constexpr int kClasses = 2;
  if (config.head == Head::classifier || config.head == Head::token_classifier) {
    config.labels = kClasses;
  }
  if (options.dropout) set_dropout(*options.dropout, config);
  if (options.vocabulary > 0) config.vocabulary = options.vocabulary;
  check(config, options.preset);
  return config;
}

TrainingBatch random_batch(const ModelConfig& config, const TrainBenchOptions& options) {
  Random random({.seed = options.seed});
  const auto fill = [&](Rows& rows, int64_t vocabulary) {
    for (int64_t s = 0; s < options.sequences; ++s) {
      const std::vector<int32_t> ids = bench::random_ids(random, options.length, vocabulary);
      rows.tokens.insert(rows.tokens.end(), ids.begin(), ids.end());
      rows.end_sequence();
    }
  };
  TrainingBatch batch;
  fill(batch.input, config.vocabulary);
  if (config.family == Family::encoder_decoder) fill(batch.target, config.output_vocabulary());
  const int64_t rows = options.sequences * options.length;
  const auto draw = [&](int64_t below) {
    return static_cast<int32_t>(random.below(static_cast<uint64_t>(below)));
  };
  if (config.head == Head::classifier) {
    for (int64_t s = 0; s < options.sequences; ++s) {
      batch.sequence_labels.push_back(draw(config.labels));
    }
    return batch;
  }
  constexpr double kMaskRate = 0.15;  // BERT's
  for (int64_t r = 0; r < rows; ++r) {
    const bool asked = config.head != Head::masked_lm || random.uniform() < kMaskRate;
    const int64_t classes =
        config.head == Head::token_classifier ? config.labels : config.output_vocabulary();
    batch.labels.push_back(asked ? draw(classes) : kIgnoreLabel);
  }
  return batch;
}

// Operations of the matmuls of one step: three times those of a forward, two for each weight and
// row, and four for each pair of positions and column in attention (both matmuls; masked positions
// are counted, as is usual).
double step_flops(const ModelConfig& config, const TrainBenchOptions& options,
                  const TrainingBatch& batch) {
  const auto rows = static_cast<double>(options.sequences * options.length);
  const auto length = static_cast<double>(options.length);
  const bool two = config.family == Family::encoder_decoder;
  double flops = 0;
  for (const ParameterSpec& spec : declare(config)) {
    const bool table = spec.name.starts_with("embedding.") || spec.name.starts_with("target.") ||
                       spec.is_relative_bias() || spec.name == "output.weight";
    const bool head = spec.name.starts_with("head.") || spec.name.starts_with("pooler") ||
                      spec.name.starts_with("next_sentence");
    if (spec.rows > 1 && !table && !head) flops += 2 * rows * static_cast<double>(spec.size());
  }
  if (config.head == Head::language_model || config.head == Head::masked_lm) {
    const auto asked = static_cast<double>(count_labels(batch).labels);
    flops += 2 * asked * static_cast<double>(config.output_vocabulary() * config.width);
    if (config.head == Head::masked_lm) {
      flops += 2 * asked * static_cast<double>(config.width * config.width);
    }
  }
  const double width = static_cast<double>(config.stack(config.first_side()).query_width());
  const int layers = two ? config.encoder_layers + 2 * config.decoder_layers
                     : config.family == Family::encoder_only ? config.encoder_layers
                                                             : config.decoder_layers;
  flops += 4 * rows * length * width * layers;
  return 3 * flops;
}

}  // namespace

TrainBench bench_train(const TrainBenchOptions& options) {
  const ModelConfig config = config_of(options);
  ThreadPool pool(options.threads);
  Network network(config, options.seed);
  // Without clipping, as in the PyTorch comparison.
  const OptimizerOptions adam{.moments = moments_of(options.moments)};
  const GradientMemory memory = gradient_memory(adam, 1);
  network.add_gradients(memory);
  Parameters& p = network.parameters();
  StepRunner runner({.network = network, .pool = pool, .loss = {.label_smoothing = 0.1f}});
  Optimizer optimizer(p, adam);
  const TrainingBatch batch = random_batch(config, options);
  const LabelCounts counts = count_labels(batch);

  TrainBench result;
  bench::describe_run(config, pool, result);
  result.tokens = batch.rows();
  result.planned_bytes = bytes_per_weight(adam, memory) * p.count() +
                         static_cast<int64_t>(runner.training_bytes(batch));
  double best = std::numeric_limits<double>::infinity(), least_cpu = best;
  int64_t step = 0;
  const auto run = [&] {
    const Clock::time_point start = Clock::now();
    const double cpu_start = cpu_seconds();
    constexpr double kLearningRate = 1e-4;
    double in_backward = 0;  // updates
    GradientStep gradients(p);
    optimizer.begin_update(pool, kLearningRate);
    runner.train(gradients, batch, counts, {.seed = options.seed, .step = ++step},
                 {.use = [&](size_t weight) {
                   const Clock::time_point final = Clock::now();
                   optimizer.update_weight(pool, weight);
                   in_backward += seconds_since(final);
                 }});
    const Clock::time_point trained = Clock::now();
    optimizer.finish_update(pool);
    const double update = in_backward + seconds_since(trained);
    const double seconds = seconds_since(start);
    least_cpu = std::min(least_cpu, cpu_seconds() - cpu_start);
    if (seconds < best) {
      best = seconds;
      result.step_ms = 1e3 * seconds;
      result.update_ms = 1e3 * update;
      result.backward_ms = 1e3 * (runner.times().backward_seconds - in_backward);
      result.forward_ms = result.step_ms - result.update_ms - result.backward_ms;
    }
    return seconds;
  };
  const double first = run();  // touches all memory for the first time
  std::vector<double> turn;
  bench::PairedShares shares;
  std::optional<bench::GemmLimit> gemm;
  bench::in_turns(
      options.seconds, first, [&] { turn.push_back(run()); },
      [&](double seconds) {
        if (!gemm) {
          result.peak_rss_bytes = peak_rss_bytes();  // before the limit allocates
          gemm.emplace(pool);
        }
        shares.add(turn, gemm->sample(seconds));
        turn.clear();
      });
  result.cpu_ms = 1e3 * least_cpu;
  bench::fill_speeds(best, step_flops(config, options, batch), shares, result);
  return result;
}

}  // namespace heed
