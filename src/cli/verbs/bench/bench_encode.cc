// heed bench encode: encoder speed of a preset.
#include <memory>

#include "cli/table.h"
#include "cli/verbs/bench/bench_preset.h"
#include "cli/verbs/bench/bench_topics.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "Random weights of a preset and one random batch: hidden states without the head. GFLOP/s\n"
    "counts GEMMs only; the limit is the best GEMM of the same run.\n"
    "\n"
    "Example:\n"
    "  heed bench encode --preset bert-base --sequences 8 --length 128 --json";

struct EncodeFlags : CommonFlags {
  EncodeBenchOptions options;
  int sequences = 8, length = 128;
};

std::string to_text(const EncodeBench& b) {
  return run_text(b, "tokens a batch") + fixed(b.tokens_per_second, 0) + " tokens/s, " +
         fixed(b.sequences_per_second, 1) + " sequences/s, " + fixed(b.batch_ms, 2) +
         " ms per batch (median " + fixed(b.batch_ms_p50, 2) + ", 90 % within " +
         fixed(b.batch_ms_p90, 2) + ")\n" +
         limit_text(b.gflops, b.fraction_of_limit, b.gemm_limit_gflops) + "\nmemory " +
         megabytes(b.peak_rss_bytes) + " at most, activations " + megabytes(b.planned_bytes) + "\n";
}

std::string to_json(const EncodeBench& b) {
  return preset_json(b, {{"sequences_per_second", b.sequences_per_second},
                         {"batch_ms", b.batch_ms},
                         {"batch_ms_p50", b.batch_ms_p50},
                         {"batch_ms_p90", b.batch_ms_p90},
                         {"planned_bytes", b.planned_bytes}})
             .dump(2) +
         "\n";
}

void run_encode(EncodeFlags& flags, Output& out) {
  require_preset(flags.options.preset, "encode", "bert-base");
  flags.options.sequences = flags.sequences;
  flags.options.length = flags.length;
  flags.options.threads = flags.threads;
  flags.options.seed = flags.seed;
  const EncodeBench bench = bench_encode(flags.options);
  out.write(flags.json ? to_json(bench) : to_text(bench));
}

}  // namespace

void add_bench_encode(Command bench) {
  const Command encode = bench.add_topic("encode", "Texts through an encoder of a preset");
  const auto flags = std::make_shared<EncodeFlags>();
  add_preset_flags(encode, flags->options.preset, flags->options.seconds);
  add_type_flag(encode, flags->options.type);
  add_number(encode, "--sequences", flags->sequences, {.min = 1, .max = kMaxBenchSize},
             "sequences per batch");
  add_number(encode, "--length", flags->length, {.min = 1, .max = kMaxBenchSize}, "tokens of each");
  add_common_flags(encode, *flags);
  encode.footer(kHelp);
  encode.on_run([flags](Output& out) { run_encode(*flags, out); });
}

}  // namespace heed::cli
