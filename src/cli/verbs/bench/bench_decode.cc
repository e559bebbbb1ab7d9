// heed bench translate and heed bench generate: decoding speed of a preset.
#include <memory>

#include "cli/table.h"
#include "cli/verbs/bench/bench_preset.h"
#include "cli/verbs/bench/bench_topics.h"

namespace heed::cli {
namespace {

constexpr const char* kTranslateHelp =
    "Random weights of a preset and random sources, submitted at once as in heed translate. Each\n"
    "translation has exactly --new-tokens tokens. A batch ends with its last translation; latency\n"
    "is counted from submission.\n"
    "\n"
    "GFLOP/s counts GEMMs only. GB/s counts the bytes that must be read: all weights once per\n"
    "step, and the KV cache of each sequence; its limit is the measured bandwidth of reading as\n"
    "many bytes as the weights of a step, from memory or cache. Both limits are measured\n"
    "alternately with the batches; a fraction of a limit is the median over the turns.\n"
    "\n"
    "Examples:\n"
    "  heed bench translate --sentences 1\n"
    "  heed bench translate --preset transformer-tiny --beam 4 --json";

constexpr const char* kGenerateHelp =
    "Random weights of a preset and random prompts of --length tokens, submitted at once. Each\n"
    "sequence is continued by exactly --new-tokens. Without a beam the prefill time, until the\n"
    "first token, is reported separately, and all other speeds are those of decoding.\n"
    "\n"
    "GFLOP/s counts GEMMs only. GB/s counts the bytes that must be read: all weights once per\n"
    "step, and the KV cache of each sequence; its limit is the measured bandwidth of reading as\n"
    "many bytes as the weights of a step, from memory or cache. Both limits are measured\n"
    "alternately with the batches; a fraction of a limit is the median over the turns.\n"
    "\n"
    "Examples:\n"
    "  heed bench generate\n"
    "  heed bench generate --preset gpt2 --sequences 8 --length 128 --new-tokens 64 --json";

struct DecodeFlags : CommonFlags {
  DecodeBenchOptions options;
  int requests = 1, length = 0, new_tokens = 0, vocabulary = 0;
};

// "12.1 (50 %), 12.9 (90 %), 15.0 (99 %)"
std::string to_text(const Percentiles& p) {
  return fixed(p.p50, 1) + " (50 %), " + fixed(p.p90, 1) + " (90 %), " + fixed(p.p99, 1) +
         " (99 %)";
}

std::string to_text(const DecodeBench& b, const std::string& requests) {
  std::string text = run_text(b, "new tokens a batch");
  if (b.prompt_ms > 0) {
    text += "prompts " + fixed(b.prompt_tokens_per_second, 0) + " tokens/s, " +
            fixed(b.prompt_ms, 1) + " ms; " +
            limit_text(b.prompt_gflops, b.prompt_fraction_of_limit, b.gemm_limit_gflops) + "\n";
  }
  text += fixed(b.tokens_per_second, 1) + " tokens/s, " + fixed(b.requests_per_second, 2) + " " +
          requests + "/s, " + fixed(b.batch_ms, 1) + " ms a batch\n";
  text += "latency in ms: " + to_text(b.latency_ms) + "\n";
  if (b.token_ms.p50 > 0) text += "from token to token in ms: " + to_text(b.token_ms) + "\n";
  return text + limit_text(b.gflops, b.fraction_of_limit, b.gemm_limit_gflops) + "\n" +
         fixed(b.gbs, 1) + " GB/s, " + fixed(100 * b.fraction_of_bandwidth, 0) +
         " % of the measured read bandwidth (" + fixed(b.bandwidth_limit_gbs, 1) + ")\nmemory " +
         megabytes(b.peak_rss_bytes) + " at most\n";
}

std::string to_json(const DecodeBench& b, const std::string& requests) {
  nlohmann::ordered_json own = {{"batch_ms", b.batch_ms},
                                {requests + "_per_second", b.requests_per_second},
                                {"latency_ms_p50", b.latency_ms.p50},
                                {"latency_ms_p90", b.latency_ms.p90},
                                {"latency_ms_p99", b.latency_ms.p99}};
  if (b.prompt_ms > 0) {
    own.update({{"token_ms_p50", b.token_ms.p50},
                {"token_ms_p90", b.token_ms.p90},
                {"token_ms_p99", b.token_ms.p99},
                {"prompt_ms", b.prompt_ms},
                {"prompt_tokens_per_second", b.prompt_tokens_per_second},
                {"prompt_gflops", b.prompt_gflops},
                {"prompt_fraction_of_limit", b.prompt_fraction_of_limit}});
  }
  own.update({{"gbs", b.gbs},
              {"bandwidth_limit_gbs", b.bandwidth_limit_gbs},
              {"fraction_of_bandwidth", b.fraction_of_bandwidth}});
  return preset_json(b, own).dump(2) + "\n";
}

// The differences of the two topics.
struct Topic {
  const char *name, *summary, *help;
  const char *requests, *what_requests, *what_length;  // "sentences", and help texts
  DecodeBench (*measure)(const DecodeBenchOptions& options);
};

void run_topic(DecodeFlags& flags, const Topic& topic, Output& out) {
  flags.options.requests = flags.requests;
  flags.options.length = flags.length;
  flags.options.new_tokens = flags.new_tokens;
  flags.options.vocabulary = flags.vocabulary;
  flags.options.threads = flags.threads;
  flags.options.seed = flags.seed;
  const DecodeBench bench = topic.measure(flags.options);
  out.write(flags.json ? to_json(bench, topic.requests) : to_text(bench, topic.requests));
}

// `defaults` are the default values of the flags.
void add_topic(Command bench, const Topic& topic, DecodeFlags defaults) {
  const Command command = bench.add_topic(topic.name, topic.summary);
  const auto flags = std::make_shared<DecodeFlags>(std::move(defaults));
  add_preset_flags(command, flags->options.preset, flags->options.seconds);
  add_type_flag(command, flags->options.type);
  const Range<int> some{.min = 1, .max = kMaxBenchSize};
  constexpr int kWidestBeam = 1024;
  add_number(command, "--" + std::string(topic.requests), flags->requests, some,
             topic.what_requests);
  add_number(command, "--length", flags->length, some, topic.what_length);
  add_number(command, "--new-tokens", flags->new_tokens, some, "tokens of each answer");
  add_number(command, "--beam", flags->options.beam, {.min = 1, .max = kWidestBeam},
             "beam size; 1 is greedy");
  add_number(command, "--vocabulary", flags->vocabulary, {.min = 0, .max = 1 << 24},
             "vocabulary size; 0: the preset's");
  add_common_flags(command, *flags);
  command.footer(topic.help);
  command.on_run([flags, topic](Output& out) { run_topic(*flags, topic, out); });
}

}  // namespace

void add_bench_translate(Command bench) {
  DecodeFlags defaults;
  defaults.options.preset = "transformer-base";
  defaults.requests = 32, defaults.length = 24, defaults.new_tokens = 24;
  add_topic(bench,
            {.name = "translate",
             .summary = "Translations by a preset",
             .help = kTranslateHelp,
             .requests = "sentences",
             .what_requests = "sentences of the batch",
             .what_length = "tokens of each source",
             .measure = bench_translate},
            std::move(defaults));
}

void add_bench_generate(Command bench) {
  DecodeFlags defaults;
  defaults.options.preset = "gpt2";
  defaults.requests = 1, defaults.length = 128, defaults.new_tokens = 64;
  add_topic(bench,
            {.name = "generate",
             .summary = "Texts that a preset continues",
             .help = kGenerateHelp,
             .requests = "sequences",
             .what_requests = "prompts of the batch",
             .what_length = "tokens of each prompt",
             .measure = bench_generate},
            std::move(defaults));
}

}  // namespace heed::cli
