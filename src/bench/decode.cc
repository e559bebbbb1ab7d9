// The speed of decoding: batches of requests through the engine, as shares of the machine's limits.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process_memory.h"
#include "bench/limits.h"
#include "bench/preset_bench.h"
#include "bench/row.h"
#include "bench/turns.h"
#include "heed/bench.h"
#include "heed/engine.h"
#include "heed/error.h"
#include "model/network.h"
#include "train/run/trainer.h"

namespace heed {
namespace {

// Required work of a batch or of a part of it.
struct Work {
  double flops = 0;  // of matmuls
  double bytes = 0;  // to be read

  Work& operator+=(const Work& more) {
    flops += more.flops, bytes += more.bytes;
    return *this;
  }
};

// Sizes of a model, by step.
class Costs {
 public:
  Costs(const ModelConfig& config, const DecodeBenchOptions& options)
      : o_(options), config_(config) {
    const std::string last_layer = "decoder." + std::to_string(config.decoder_layers - 1) + ".";
    for (const ParameterSpec& spec : declare(config)) {
      if (spec.rows <= 1 || spec.is_relative_bias()) continue;
      const bool of_source = spec.name.find(".cross.kv.") != std::string::npos;
      if (spec.name.starts_with("encoder.") || of_source) source_weights_ += size_of(spec);
      if (spec.name.starts_with("decoder.") && !of_source) weights_ += size_of(spec);
      if (spec.name.starts_with(last_layer + "self.out") ||
          spec.name.starts_with(last_layer + "ffn.")) {
        after_keys_ += size_of(spec);
      }
    }
    output_weights_ = size_of({"output.weight", config.output_vocabulary(), config.width});
    requests_ = static_cast<double>(options.requests);
    length_ = static_cast<double>(options.length);
    const StackConfig decoder = config.stack(Side::decoder);
    query_width_ = static_cast<double>(decoder.query_width());
    key_width_ = static_cast<double>(decoder.key_width());
  }

  // The encoder and K and V of cross-attention, or the prefill.
  Work input() const {
    const double rows = requests_ * length_;
    if (config_.family == Family::encoder_decoder) {
      const auto width = static_cast<double>(config_.stack(Side::encoder).query_width());
      return {products(rows, source_weights_) +
                  attention(rows, length_, width) * config_.encoder_layers,
              source_weights_.bytes};
    }
    // In the last layer only K and V are computed for all rows but the last of a prompt.
    return {products(rows, weights_) - products(rows - requests_, after_keys_) +
                products(requests_, output_weights_) +
                attention(rows, length_, query_width_) * config_.decoder_layers,
            weights_.bytes + output_weights_.bytes};
  }

  // The step of new token i; the first token after a prompt is part of input().
  Work step(int64_t i) const {
    const bool has_source = config_.family == Family::encoder_decoder;
    const double texts = i == 0 ? requests_ : requests_ * o_.beam;
    const double positions = static_cast<double>(i) + (has_source ? 1 : length_);
    const double sources = has_source ? length_ : 0;
    const int layers = config_.decoder_layers;
    const double keys = layers * (texts * positions + requests_ * sources);
    return {products(texts, weights_) + products(texts, output_weights_) +
                attention(texts, positions + sources, query_width_) * layers,
            weights_.bytes + output_weights_.bytes + kFloat * 2 * key_width_ * keys};
  }

  // Bytes of the weights that each step reads.
  int64_t step_bytes() const {
    return static_cast<int64_t>(weights_.bytes + output_weights_.bytes);
  }

  Work steps(int64_t first) const {
    Work all;
    for (int64_t i = first; i < o_.new_tokens; ++i) all += step(i);
    return all;
  }

 private:
  static constexpr double kFloat = sizeof(float);
  struct Size {
    double numbers = 0, bytes = 0;
    Size& operator+=(const Size& more) {
      numbers += more.numbers, bytes += more.bytes;
      return *this;
    }
  };
  Size size_of(const ParameterSpec& spec) const {
    return {static_cast<double>(spec.size()), bench::weight_bytes(o_.type, spec)};
  }
  static double products(double rows, const Size& weights) { return 2 * rows * weights.numbers; }
  // Both matmuls; masked positions are counted, as is usual.
  static double attention(double rows, double keys, double width) {
    return 4 * rows * keys * width;
  }

  const DecodeBenchOptions& o_;
  const ModelConfig& config_;
  Size source_weights_, weights_, output_weights_;
  Size after_keys_;  // of weights_: the last layer after K and V
  double requests_ = 0, length_ = 0, query_width_ = 0, key_width_ = 0;
};

// Times of one request.
struct Times {
  std::vector<Clock::time_point> pieces;
  Clock::time_point done;
};

// Seconds of each batch and of each wait for a token.
struct Measured {
  bool is_streamed = false;     // otherwise the end of the prefill is unknown
  std::vector<double> prompts;  // until all first tokens (prefill)
  std::vector<double> rests;    // the rest (decode); everything if nothing is streamed
  std::vector<double> batches;
  std::vector<double> requests, tokens;
  // Of the machine's limits.
  bench::PairedShares rest_gemm, rest_reading, prompt_gemm;
};

class Batches {
 public:
  Batches(Engine& engine, const ModelConfig& config, const DecodeBenchOptions& options)
      : engine_(engine), config_(config), o_(options) {}

  // Runs one batch with new ids, so that no prefix is shared through the cache. Returns seconds.
  double run(Measured& measured) { return run(measured, o_.new_tokens); }

  // Runs prefills alone, several in a row: that of a batch with many tokens runs once a turn, with
  // caches that the limits have evicted.
  void run_prompts(Measured& measured) {
    constexpr int kTimes = 3, kLeastTokens = 2;  // with one token the end of the prefill is unknown
    for (int i = 0; i < kTimes; ++i) run(measured, kLeastTokens);
  }

 private:
  double run(Measured& measured, int64_t new_tokens) {
    Random random({.seed = o_.seed, .step = ++batches_});
    std::vector<Request> requests(static_cast<size_t>(o_.requests));
    SearchOptions search;
    search.beam = o_.beam;
    search.min_new_tokens = search.max_new_tokens = new_tokens;
    for (Request& request : requests) {
      request.ids = bench::random_ids(random, o_.length, config_.vocabulary);
      request.search = search;
    }
    measured.is_streamed = config_.family == Family::decoder_only && o_.beam == 1 && new_tokens > 1;
    std::vector<Times> times(requests.size());
    const Clock::time_point start = Clock::now();
    if (measured.is_streamed) {
      std::vector<Handle> handles;
      for (size_t i = 0; i < requests.size(); ++i) {
        handles.push_back(engine_.submit(requests[i], {.piece = [&times, i](const StreamPiece&) {
                                           times[i].pieces.push_back(Clock::now());
                                         }}));
      }
      for (const Handle& handle : handles) handle.get();
      for (Times& t : times) t.done = t.pieces.back();
    } else {
      // Answers of equal length finish in the order of their requests.
      engine_.run(std::move(requests), [&](size_t i, Result&&) { times[i].done = Clock::now(); });
    }
    return add(start, times, measured);
  }

  static double add(Clock::time_point start, const std::vector<Times>& times, Measured& measured) {
    const auto seconds = [](Clock::time_point from, Clock::time_point to) {
      return std::chrono::duration<double>(to - from).count();
    };
    double batch = 0, prompt = 0;
    for (const Times& t : times) {
      measured.requests.push_back(seconds(start, t.done));
      batch = std::max(batch, measured.requests.back());
      if (t.pieces.empty()) continue;
      prompt = std::max(prompt, seconds(start, t.pieces.front()));
      for (size_t i = 1; i < t.pieces.size(); ++i) {
        measured.tokens.push_back(seconds(t.pieces[i - 1], t.pieces[i]));
      }
    }
    measured.batches.push_back(batch);
    measured.prompts.push_back(prompt);
    measured.rests.push_back(batch - prompt);
    return batch;
  }

  Engine& engine_;
  const ModelConfig& config_;
  const DecodeBenchOptions& o_;
  uint32_t batches_ = 0;
};

ModelConfig config_of(const DecodeBenchOptions& options, Family family) {
  const bool has_source = family == Family::encoder_decoder;
  const int64_t most = has_source ? std::max(options.length, options.new_tokens)
                                  : options.length + options.new_tokens - 1;
  ModelConfig config = bench::preset_config(options.preset, most);
  if (config.family != family || config.head != Head::language_model) {
    throw Error(ErrorCode::invalid_argument,
                "preset " + options.preset + " is a model of family " +
                    std::string(name_of(config.family)) + ", and this measures " +
                    std::string(name_of(family)),
                config.family == Family::encoder_only ? "heed bench encode measures this one"
                : has_source                          ? "heed bench generate measures this one"
                                                      : "heed bench translate measures this one");
  }
  if (options.vocabulary > 0) config.vocabulary = options.vocabulary, config.target_vocabulary = 0;
  // Ids beyond a smaller vocabulary, and a default start id.
  for (int* id : {&config.pad_id, &config.bos_id, &config.eos_id, &config.decoder_start_id}) {
    if (*id >= config.output_vocabulary()) *id = -1;
  }
  if (config.decoder_start_id < 0) config.decoder_start_id = 0;
  check(config, options.preset);
  return config;
}

Percentiles milliseconds(std::vector<double>& seconds) {
  const Percentiles p = bench::percentiles(seconds);
  return {1e3 * p.p50, 1e3 * p.p90, 1e3 * p.p99};
}

// The values since the last turn, from index `begin` on.
std::vector<double> since(size_t begin, const std::vector<double>& values) {
  return {values.begin() + static_cast<std::ptrdiff_t>(begin), values.end()};
}

// KV cache for about two batches. With more, every batch would use untouched memory, because earlier
// prompts are kept for prefix sharing; a cache that has been in use for a while has none.
uint64_t cache_bytes(const KvLayout& layout, const DecodeBenchOptions& options) {
  const auto blocks = [](int64_t positions) { return positions / kernels::kKvBlock + 2; };
  const int64_t of_request =
      blocks(options.length) + options.beam * blocks(options.length + options.new_tokens);
  const int64_t groups = std::ssize(layout.groups);
  return 2 * sizeof(float) *
         static_cast<uint64_t>(options.requests * groups * of_request * layout.block_floats());
}

Measured measure(const ModelConfig& config, const DecodeBenchOptions& options, const Costs& costs,
                 DecodeBench& result) {
  ThreadPool pool(options.threads);  // for the limits; the engine has another
  const auto network =
      std::make_shared<const Network>(bench::preset_network(config, options.seed, options.type));
  Engine engine(Model(network, nullptr),
                {.threads = options.threads,
                 .kv_memory_bytes = cache_bytes(network->transformer().kv_layout(), options),
                 .scores = false});
  bench::describe_run(config, pool, result);
  Batches batches(engine, config, options);
  Measured warm_up, measured;
  const double batch_seconds = batches.run(warm_up);  // touches all memory for the first time
  std::optional<bench::GemmLimit> gemm;
  std::optional<bench::ReadLimit> reading;
  size_t turn_begin = 0;
  bench::in_turns(
      options.seconds, batch_seconds, [&] { batches.run(measured); },
      [&](double seconds) {
        if (!gemm) {
          result.peak_rss_bytes = peak_rss_bytes();  // before the limits allocate
          gemm.emplace(pool), reading.emplace(pool, costs.step_bytes());
        }
        Measured alone;
        if (measured.is_streamed) batches.run_prompts(alone);
        const std::vector<double> gflops = gemm->sample(seconds);
        const std::vector<double> gbs = reading->sample(seconds);
        measured.rest_gemm.add(since(turn_begin, measured.rests), gflops);
        measured.rest_reading.add(since(turn_begin, measured.rests), gbs);
        turn_begin = measured.rests.size();
        if (!measured.is_streamed) return;
        measured.prompt_gemm.add(alone.prompts, gflops);
        std::ranges::copy(alone.prompts, std::back_inserter(measured.prompts));
      });
  return measured;
}

DecodeBench bench_decode(const DecodeBenchOptions& options, Family family) {
  const ModelConfig config = config_of(options, family);
  const Costs costs(config, options);
  DecodeBench result;
  Measured measured = measure(config, options, costs, result);

  // The first token is part of the prefill.
  int64_t first = family == Family::decoder_only ? 1 : 0;
  Work work = costs.steps(first);
  if (measured.is_streamed) {
    const double prompt = bench::percentile(measured.prompts, 0), flops = costs.input().flops;
    result.prompt_ms = 1e3 * prompt;
    result.prompt_tokens_per_second =
        static_cast<double>(options.requests * options.length) / prompt;
    result.prompt_gflops = flops / prompt / 1e9;
    result.prompt_fraction_of_limit = measured.prompt_gemm.share(flops);
    result.token_ms = milliseconds(measured.tokens);
  } else {
    work += costs.input();
    first = 0;
  }
  result.tokens = options.requests * (options.new_tokens - first);
  const double rest = bench::percentile(measured.rests, 0);
  const double batch = bench::percentile(measured.batches, 0);
  bench::fill_speeds(rest, work.flops, measured.rest_gemm, result);
  result.gbs = work.bytes / rest / 1e9;
  result.bandwidth_limit_gbs = measured.rest_reading.best_limit();
  result.fraction_of_bandwidth = measured.rest_reading.share(work.bytes);
  result.batch_ms = 1e3 * batch;
  result.requests_per_second = static_cast<double>(options.requests) / batch;
  result.latency_ms = milliseconds(measured.requests);
  return result;
}

}  // namespace

DecodeBench bench_translate(const DecodeBenchOptions& options) {
  return bench_decode(options, Family::encoder_decoder);
}

DecodeBench bench_generate(const DecodeBenchOptions& options) {
  return bench_decode(options, Family::decoder_only);
}

}  // namespace heed
