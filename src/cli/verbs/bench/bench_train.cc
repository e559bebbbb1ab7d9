// heed bench train: whole training steps.
#include <memory>
#include <optional>

#include "cli/table.h"
#include "cli/verbs/bench/bench_preset.h"
#include "cli/verbs/bench/bench_topics.h"

namespace heed::cli {
namespace {

constexpr const char* kTrainHelp =
    "Random weights of a preset and one random batch: forward, loss, backward and Adam; the best\n"
    "step counts. GFLOP/s counts GEMMs only; the limit is the best GEMM of the same run.\n"
    "\n"
    "Examples:\n"
    "  heed bench train --preset transformer-tiny --sequences 170 --length 24 --dropout 0.1\n"
    "  heed bench train --preset nanogpt-cpu --sequences 12 --length 64 --json";

struct TrainFlags : CommonFlags {
  TrainBenchOptions options;
  int sequences = 32, length = 32, vocabulary = 0;
  std::optional<double> dropout;
};

std::string to_text(const TrainBench& b) {
  return run_text(b, "tokens a step") + fixed(b.tokens_per_second, 0) + " tokens/s, " +
         fixed(b.step_ms, 1) + " ms a step: forward " + fixed(b.forward_ms, 1) + ", backward " +
         fixed(b.backward_ms, 1) + ", update " + fixed(b.update_ms, 1) + "\n" +
         limit_text(b.gflops, b.fraction_of_limit, b.gemm_limit_gflops) + "\nmemory " +
         megabytes(b.peak_rss_bytes) + " at most, planned " + megabytes(b.planned_bytes) +
         ", excluding the process itself\n";
}

std::string to_json(const TrainBench& b) {
  return preset_json(b, {{"step_ms", b.step_ms},
                         {"forward_ms", b.forward_ms},
                         {"backward_ms", b.backward_ms},
                         {"update_ms", b.update_ms},
                         {"cpu_ms", b.cpu_ms},
                         {"planned_bytes", b.planned_bytes}})
             .dump(2) +
         "\n";
}

void run_train(TrainFlags& flags, Output& out) {
  require_preset(flags.options.preset, "train", "transformer-tiny");
  flags.options.sequences = flags.sequences;
  flags.options.length = flags.length;
  flags.options.vocabulary = flags.vocabulary;
  if (flags.dropout) flags.options.dropout = static_cast<float>(*flags.dropout);
  flags.options.threads = flags.threads;
  flags.options.seed = flags.seed;
  const TrainBench bench = bench_train(flags.options);
  out.write(flags.json ? to_json(bench) : to_text(bench));
}

}  // namespace

void add_bench_train(Command bench) {
  const Command train = bench.add_topic("train", "Whole training steps of a preset");
  const auto flags = std::make_shared<TrainFlags>();
  add_preset_flags(train, flags->options.preset, flags->options.seconds);
  add_text(train, "--objective", flags->options.objective, "NAME",
           "translation, causal_lm, masked_lm, classification or tagging (default: the preset's)");
  add_number(train, "--sequences", flags->sequences, {.min = 1, .max = kMaxBenchSize},
             "sequences per batch");
  add_number(train, "--length", flags->length, {.min = 1, .max = kMaxBenchSize},
             "tokens per sequence and side");
  add_number(train, "--vocabulary", flags->vocabulary, {.min = 0, .max = kMaxBenchSize},
             "vocabulary size; 0: the preset's");
  add_number(train, "--dropout", flags->dropout, {.min = 0, .max = 0.99},
             "dropout probability (default: the preset's)");
  add_text(train, "--moments", flags->options.moments, "TYPE",
           "type of Adam's moments: f32, or bf16 with half the memory");
  add_common_flags(train, *flags);
  train.footer(kTrainHelp);
  train.on_run([flags](Output& out) { run_train(*flags, out); });
}

}  // namespace heed::cli
