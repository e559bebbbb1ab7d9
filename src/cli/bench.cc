// heed bench: Heed's speed on the machine at hand, next to that machine's limits.
#include "heed/bench.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/bench_topics.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr const char* kOpsHelp =
    "Columns:\n"
    "  name      the operation, and what was run of it\n"
    "  shape     the size of its input\n"
    "  ms        best time of one call\n"
    "  GFLOP/s   useful operations a second; - where counting them says nothing\n"
    "  GB/s      bytes that had to move, each operand once\n"
    "  limit     what bounds it: gemm (arithmetic), memory, or l2 (the L2 caches)\n"
    "  of limit  its speed as a share of that limit, measured in the same run\n"
    "  x oneDNN  matrix products: speed next to oneDNN called directly with its own threads\n"
    "\n"
    "Speeds move from run to run; shares of the limit compare better.\n"
    "\n"
    "Examples:\n"
    "  heed bench ops --filter layer_norm\n"
    "  heed bench ops --threads 1 --seconds 0.05 --json";

struct OpsFlags : CommonFlags {
  OpsBenchOptions options;
};

std::string to_text(const OpsBench& bench) {
  Table table({{"name"},
               {"shape"},
               {"ms", Align::right},
               {"GFLOP/s", Align::right},
               {"GB/s", Align::right},
               {"limit"},
               {"of limit", Align::right},
               {"x oneDNN", Align::right}});
  for (const OpsBenchRow& row : bench.rows) {
    table.add_row({row.name, row.shape, fixed(row.ms, 3),
                   row.gflops > 0 ? fixed(row.gflops, 1) : "-", fixed(row.gbs, 1), name(row.limit),
                   fixed(100 * row.fraction_of_limit, 0) + " %",
                   row.ratio_to_onednn > 0 ? fixed(row.ratio_to_onednn, 2) : "-"});
  }
  return "threads " + std::to_string(bench.threads) + ", instruction set " + bench.instruction_set +
         "\nlimits of this run: gemm " + fixed(bench.gemm_limit_gflops, 1) + " GFLOP/s, memory " +
         fixed(bench.bandwidth_limit_gbs, 1) + " GB/s (in place " +
         fixed(bench.update_limit_gbs, 1) + ", reading " + fixed(bench.read_limit_gbs, 1) +
         "), l2 " + fixed(bench.l2_limit_gbs, 1) + " GB/s\n\n" + table.text();
}

std::string to_json(const OpsBench& bench) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const OpsBenchRow& row : bench.rows) {
    rows.push_back({{"name", row.name},
                    {"shape", row.shape},
                    {"ms", row.ms},
                    {"gflops", row.gflops},
                    {"gbs", row.gbs},
                    {"limit", name(row.limit)},
                    {"fraction_of_limit", row.fraction_of_limit},
                    {"ratio_to_onednn", row.ratio_to_onednn}});
  }
  const nlohmann::ordered_json document = {{"threads", bench.threads},
                                           {"instruction_set", bench.instruction_set},
                                           {"gemm_limit_gflops", bench.gemm_limit_gflops},
                                           {"bandwidth_limit_gbs", bench.bandwidth_limit_gbs},
                                           {"update_limit_gbs", bench.update_limit_gbs},
                                           {"read_limit_gbs", bench.read_limit_gbs},
                                           {"l2_limit_gbs", bench.l2_limit_gbs},
                                           {"rows", std::move(rows)}};
  return document.dump(2) + "\n";
}

void run_ops(OpsFlags& flags, Output& out) {
  ProgressLine progress;
  flags.options.threads = flags.threads;
  flags.options.seed = flags.seed;
  flags.options.progress = [&progress](std::string_view row, int number, int rows) {
    progress.show(std::to_string(number) + "/" + std::to_string(rows) + " " + std::string(row));
  };
  const OpsBench bench = bench_ops(flags.options);
  progress.clear();
  out.write(flags.json ? to_json(bench) : to_text(bench));
}

constexpr const char* kTrainHelp =
    "Random weights of a preset and one random batch: forward, loss, backward and Adam, the best\n"
    "step of several. GFLOP/s counts the matrix products alone; the limit is the best GEMM seen "
    "in\n"
    "the same run.\n"
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
  const auto megabytes = [](int64_t bytes) {
    return fixed(static_cast<double>(bytes) / 1e6, 0) + " MB";
  };
  return "threads " + std::to_string(b.threads) + ", instruction set " + b.instruction_set + ", " +
         fixed(static_cast<double>(b.parameters) / 1e6, 2) + " M parameters, " +
         std::to_string(b.tokens) + " tokens a step\n" + fixed(b.tokens_per_second, 0) +
         " tokens/s, " + fixed(b.step_ms, 1) + " ms a step: forward " + fixed(b.forward_ms, 1) +
         ", backward " + fixed(b.backward_ms, 1) + ", update " + fixed(b.update_ms, 1) + "\n" +
         fixed(b.gflops, 1) + " GFLOP/s, " + fixed(100 * b.fraction_of_limit, 0) +
         " % of the GEMM limit of this run (" + fixed(b.gemm_limit_gflops, 1) + ")\nmemory " +
         megabytes(b.peak_rss_bytes) + " at most, planned " + megabytes(b.planned_bytes) +
         " beside the program\n";
}

std::string to_json(const TrainBench& b) {
  const nlohmann::ordered_json document = {{"threads", b.threads},
                                           {"instruction_set", b.instruction_set},
                                           {"parameters", b.parameters},
                                           {"tokens", b.tokens},
                                           {"tokens_per_second", b.tokens_per_second},
                                           {"step_ms", b.step_ms},
                                           {"forward_ms", b.forward_ms},
                                           {"backward_ms", b.backward_ms},
                                           {"update_ms", b.update_ms},
                                           {"gflops", b.gflops},
                                           {"gemm_limit_gflops", b.gemm_limit_gflops},
                                           {"fraction_of_limit", b.fraction_of_limit},
                                           {"planned_bytes", b.planned_bytes},
                                           {"peak_rss_bytes", b.peak_rss_bytes}};
  return document.dump(2) + "\n";
}

void run_train(TrainFlags& flags, Output& out) {
  if (flags.options.preset.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed bench train: --preset is missing",
                "heed bench train --preset transformer-tiny");
  }
  flags.options.sequences = flags.sequences;
  flags.options.length = flags.length;
  flags.options.vocabulary = flags.vocabulary;
  if (flags.dropout) flags.options.dropout = static_cast<float>(*flags.dropout);
  flags.options.threads = flags.threads;
  flags.options.seed = flags.seed;
  const TrainBench bench = bench_train(flags.options);
  out.write(flags.json ? to_json(bench) : to_text(bench));
}

void add_bench_train(Program& program, CLI::App& bench) {
  CLI::App& train = program.add_command(bench, "train", "Whole training steps of a preset");
  const auto flags = std::make_shared<TrainFlags>();
  constexpr int kMost = 1 << 20;
  add_text(train, "--preset", flags->options.preset, "NAME", "a preset (heed presets lists them)");
  add_text(train, "--objective", flags->options.objective, "NAME",
           "translation, causal_lm, masked_lm, classification or tagging; else the preset's own");
  add_number(train, "--sequences", flags->sequences, {.min = 1, .max = kMost},
             "sequences of the batch");
  add_number(train, "--length", flags->length, {.min = 1, .max = kMost}, "tokens of each, a side");
  add_number(train, "--vocabulary", flags->vocabulary, {.min = 0, .max = kMost},
             "0 means the preset's");
  add_number(train, "--dropout", flags->dropout, {.min = 0, .max = 0.99},
             "everywhere; without it as the preset says");
  add_number(train, "--seconds", flags->options.seconds, {.min = 0.001, .max = 3600},
             "how long steps are repeated");
  add_common_flags(train, *flags);
  train.footer(kTrainHelp);
  program.on_run(train, [flags](Output& out) { run_train(*flags, out); });
}

constexpr const char* kTextHelp =
    "Each line is encoded by itself. MB/s are millions of bytes a second by all threads together, "
    "and\n"
    "MB/CPU s the same by the CPU time they used: what one thread does, however busy the machine "
    "is.\n"
    "\n"
    "Examples:\n"
    "  heed bench text --file wiki.txt --tokenizer models/gpt2 --tokenizer models/bert\n"
    "  heed bench text --threads 2 --json";

struct TextFlags : CommonFlags {
  TextBenchOptions options;
};

std::string to_text(const TextBench& bench) {
  Table table({{"tokenizer"},
               {"threads", Align::right},
               {"MB/s", Align::right},
               {"MB/CPU s", Align::right},
               {"million tokens/s", Align::right},
               {"bytes a token", Align::right}});
  for (const TextBenchRow& row : bench.rows) {
    table.add_row({row.tokenizer, std::to_string(row.threads), fixed(row.mb_per_second, 1),
                   fixed(row.mb_per_cpu_second, 1), fixed(row.tokens_per_second / 1e6, 2),
                   fixed(static_cast<double>(bench.bytes) / static_cast<double>(row.tokens), 2)});
  }
  return "text of " + fixed(static_cast<double>(bench.bytes) / 1e6, 1) + " MB in " +
         std::to_string(bench.lines) + " lines\n\n" + table.text();
}

std::string to_json(const TextBench& bench) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const TextBenchRow& row : bench.rows) {
    rows.push_back({{"tokenizer", row.tokenizer},
                    {"threads", row.threads},
                    {"mb_per_second", row.mb_per_second},
                    {"mb_per_cpu_second", row.mb_per_cpu_second},
                    {"tokens_per_second", row.tokens_per_second},
                    {"tokens", row.tokens}});
  }
  const nlohmann::ordered_json document = {
      {"bytes", bench.bytes}, {"lines", bench.lines}, {"rows", std::move(rows)}};
  return document.dump(2) + "\n";
}

void run_text(TextFlags& flags, Output& out) {
  ProgressLine progress;
  flags.options.threads = flags.threads;
  flags.options.seed = flags.seed;
  flags.options.progress = [&progress](std::string_view row, int number, int rows) {
    progress.show(std::to_string(number) + "/" + std::to_string(rows) + " " + std::string(row));
  };
  const TextBench bench = bench_text(flags.options);
  progress.clear();
  out.write(flags.json ? to_json(bench) : to_text(bench));
}

void add_bench_text(Program& program, CLI::App& bench) {
  CLI::App& text = program.add_command(bench, "text", "Tokenizers: text into ids");
  const auto flags = std::make_shared<TextFlags>();
  add_text(text, "--file", flags->options.file, "FILE",
           "the text, plain, .gz or .zst; without it, made-up words");
  add_texts(text, "--tokenizer", flags->options.tokenizers, "DIR|FILE",
            "a tokenizer to measure; without it, byte-level BPE and WordPiece made of the text");
  add_number(text, "--seconds", flags->options.seconds_per_row, {.min = 0.001, .max = 3600},
             "how long each row is repeated");
  add_common_flags(text, *flags);
  text.footer(kTextHelp);
  program.on_run(text, [flags](Output& out) { run_text(*flags, out); });
}

}  // namespace

void add_bench(Program& program) {
  CLI::App& bench = program.add_command(program.heed(), "bench", "Measure speed on this machine");

  CLI::App& ops = program.add_command(bench, "ops", "Each operation of the library by itself");
  const auto flags = std::make_shared<OpsFlags>();
  add_text(ops, "--filter", flags->options.filter, "TEXT", "only rows whose name contains TEXT");
  add_number(ops, "--seconds", flags->options.seconds_per_row, {.min = 0.001, .max = 3600},
             "how long each row is repeated");
  add_common_flags(ops, *flags);
  ops.footer(kOpsHelp);
  program.on_run(ops, [flags](Output& out) { run_ops(*flags, out); });

  add_bench_train(program, bench);
  add_bench_encode(program, bench);
  add_bench_text(program, bench);
}

}  // namespace heed::cli
