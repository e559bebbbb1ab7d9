// heed bench: speed of operations and models, relative to the limits of the machine.
#include "heed/bench.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs/bench/bench_topics.h"

namespace heed::cli {
namespace {

constexpr const char* kOpsHelp =
    "Columns:\n"
    "  name      operation and variant\n"
    "  shape     input shape\n"
    "  ms        best time of one call\n"
    "  GFLOP/s   floating-point operations per second; - where not meaningful\n"
    "  GB/s      memory traffic, counting each operand once\n"
    "  limit     bound by: gemm (arithmetic), memory, or l2 (the L2 caches)\n"
    "  of limit  fraction of that limit, measured in the same run\n"
    "  x oneDNN  GEMM only: speed relative to oneDNN with its own threads\n"
    "\n"
    "Speeds vary between runs; fractions of the limit are more stable.\n"
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

constexpr const char* kTextHelp =
    "Lines are encoded separately. MB/s is the throughput of all threads in millions of bytes per\n"
    "second; MB/CPU s is the throughput per CPU second, which does not depend on other load.\n"
    "\n"
    "Examples:\n"
    "  heed bench text --file wiki.txt --tokenizer models/en-de --tokenizer models/shakespeare\n"
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

void add_bench_text(Command bench) {
  const Command text = bench.add_topic("text", "Encoding speed of tokenizers");
  const auto flags = std::make_shared<TextFlags>();
  add_text(text, "--file", flags->options.file, "FILE",
           "text file, also .gz or .zst (default: synthetic words)");
  add_texts(text, "--tokenizer", flags->options.tokenizers, "DIR|FILE",
            "tokenizer to measure; may be repeated (default: byte-level BPE and WordPiece trained "
            "on the text)");
  add_number(text, "--seconds", flags->options.seconds_per_row, {.min = 0.001, .max = 3600},
             "measuring time per row");
  add_common_flags(text, *flags);
  text.footer(kTextHelp);
  text.on_run([flags](Output& out) { run_text(*flags, out); });
}

}  // namespace

void add_bench(Program& program) {
  const Command bench = program.add_verb("bench", "Benchmark operations and models");

  const Command ops = bench.add_topic("ops", "Single operations");
  const auto flags = std::make_shared<OpsFlags>();
  add_text(ops, "--filter", flags->options.filter, "TEXT", "only rows whose name contains TEXT");
  add_number(ops, "--seconds", flags->options.seconds_per_row, {.min = 0.001, .max = 3600},
             "measuring time per row");
  add_common_flags(ops, *flags);
  ops.footer(kOpsHelp);
  ops.on_run([flags](Output& out) { run_ops(*flags, out); });

  add_bench_train(bench);
  add_bench_encode(bench);
  add_bench_translate(bench);
  add_bench_generate(bench);
  add_bench_layers(bench);
  add_bench_text(bench);
}

}  // namespace heed::cli
