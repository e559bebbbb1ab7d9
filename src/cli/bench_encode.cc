// heed bench encode: how fast a model reads texts.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/bench_topics.h"
#include "cli/flags.h"
#include "cli/table.h"
#include "heed/bench.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "Random weights of a preset and one random batch: the hidden states of its texts, without the\n"
    "head. GFLOP/s counts the matrix products alone; the limit is the best GEMM seen in the same\n"
    "run.\n"
    "\n"
    "Example:\n"
    "  heed bench encode --preset bert-base --sequences 8 --length 128 --json";

struct EncodeFlags : CommonFlags {
  EncodeBenchOptions options;
  int sequences = 8, length = 128;
};

std::string to_text(const EncodeBench& b) {
  const auto megabytes = [](int64_t bytes) {
    return fixed(static_cast<double>(bytes) / 1e6, 0) + " MB";
  };
  return "threads " + std::to_string(b.threads) + ", instruction set " + b.instruction_set + ", " +
         fixed(static_cast<double>(b.parameters) / 1e6, 2) + " M parameters, " +
         std::to_string(b.tokens) + " tokens a batch\n" + fixed(b.tokens_per_second, 0) +
         " tokens/s, " + fixed(b.sequences_per_second, 1) + " sequences/s, " +
         fixed(b.batch_ms, 2) + " ms a batch (median " + fixed(b.batch_ms_p50, 2) +
         ", 90 % within " + fixed(b.batch_ms_p90, 2) + ")\n" + fixed(b.gflops, 1) + " GFLOP/s, " +
         fixed(100 * b.fraction_of_limit, 0) + " % of the GEMM limit of this run (" +
         fixed(b.gemm_limit_gflops, 1) + ")\nmemory " + megabytes(b.peak_rss_bytes) +
         " at most, activations " + megabytes(b.planned_bytes) + "\n";
}

std::string to_json(const EncodeBench& b) {
  const nlohmann::ordered_json document = {{"threads", b.threads},
                                           {"instruction_set", b.instruction_set},
                                           {"parameters", b.parameters},
                                           {"tokens", b.tokens},
                                           {"tokens_per_second", b.tokens_per_second},
                                           {"sequences_per_second", b.sequences_per_second},
                                           {"batch_ms", b.batch_ms},
                                           {"batch_ms_p50", b.batch_ms_p50},
                                           {"batch_ms_p90", b.batch_ms_p90},
                                           {"gflops", b.gflops},
                                           {"gemm_limit_gflops", b.gemm_limit_gflops},
                                           {"fraction_of_limit", b.fraction_of_limit},
                                           {"planned_bytes", b.planned_bytes},
                                           {"peak_rss_bytes", b.peak_rss_bytes}};
  return document.dump(2) + "\n";
}

void run_encode(EncodeFlags& flags, Output& out) {
  if (flags.options.preset.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed bench encode: --preset is missing",
                "heed bench encode --preset bert-base");
  }
  flags.options.sequences = flags.sequences;
  flags.options.length = flags.length;
  flags.options.threads = flags.threads;
  flags.options.seed = flags.seed;
  const EncodeBench bench = bench_encode(flags.options);
  out.write(flags.json ? to_json(bench) : to_text(bench));
}

}  // namespace

void add_bench_encode(Program& program, CLI::App& bench) {
  CLI::App& encode = program.add_command(bench, "encode", "Texts through an encoder of a preset");
  const auto flags = std::make_shared<EncodeFlags>();
  constexpr int kMost = 1 << 20;
  add_text(encode, "--preset", flags->options.preset, "NAME", "a preset (heed presets lists them)");
  add_number(encode, "--sequences", flags->sequences, {.min = 1, .max = kMost},
             "sequences of the batch");
  add_number(encode, "--length", flags->length, {.min = 1, .max = kMost}, "tokens of each");
  add_number(encode, "--seconds", flags->options.seconds, {.min = 0.001, .max = 3600},
             "how long batches are repeated");
  add_common_flags(encode, *flags);
  encode.footer(kHelp);
  program.on_run(encode, [flags](Output& out) { run_encode(*flags, out); });
}

}  // namespace heed::cli
