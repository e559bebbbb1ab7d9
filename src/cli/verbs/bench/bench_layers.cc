// heed bench layers: self-attention against recurrent and convolutional layers.
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files/atomic_file.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs/bench/bench_topics.h"
#include "heed/bench.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "One layer of each kind on sequences of n vectors of width d (Vaswani et al. 2017, table 1).\n"
    "Self-attention is Heed's, with heads of width 64, without and with its projections;\n"
    "recurrent layers and the convolution are oneDNN's.\n"
    "\n"
    "Columns:\n"
    "  n, d     sequence length and width\n"
    "  ms       best time of one call, for --sequences sequences\n"
    "  GFLOP    floating-point operations of that call\n"
    "  steps    sequential operations\n"
    "  path     maximum path length between two positions\n"
    "\n"
    "Examples:\n"
    "  heed bench layers --out layers.svg\n"
    "  heed bench layers --length 256 --length 1024 --width 512 --sequences 1 --json";

struct LayersFlags : CommonFlags {
  LayersBenchOptions options;
  std::vector<std::string> lengths, widths;
  int window = 32, kernel = 3, sequences = 4;
  std::string out;
};

// The values of a repeated flag.
void read_sizes(const std::string& flag, const std::vector<std::string>& texts,
                std::vector<int64_t>& sizes) {
  if (!texts.empty()) sizes.clear();
  for (const std::string& text : texts) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw Error(ErrorCode::invalid_argument, flag + " must be an integer, got '" + text + "'",
                  "repeat the flag: " + flag + " 256 " + flag + " 1024");
    }
    sizes.push_back(size);
  }
}

std::string to_text(const LayersBench& bench) {
  Table table({{"layer"},
               {"n", Align::right},
               {"d", Align::right},
               {"ms", Align::right},
               {"GFLOP", Align::right},
               {"GFLOP/s", Align::right},
               {"steps", Align::right},
               {"path", Align::right}});
  for (const LayersBenchRow& row : bench.rows) {
    table.add_row({row.layer, std::to_string(row.length), std::to_string(row.width),
                   fixed(row.ms, 3), fixed(row.gflop, 3), fixed(row.gflops, 1),
                   std::to_string(row.sequential_steps), std::to_string(row.path_length)});
  }
  const LayersBenchOptions& o = bench.options;
  return "threads " + std::to_string(bench.threads) + ", instruction set " + bench.instruction_set +
         ", " + std::to_string(o.sequences) + " sequences, window " + std::to_string(o.window) +
         " on each side, kernel " + std::to_string(o.kernel) + "\n\n" + table.text();
}

std::string to_json(const LayersBench& bench) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const LayersBenchRow& row : bench.rows) {
    rows.push_back({{"layer", row.layer},
                    {"length", row.length},
                    {"width", row.width},
                    {"ms", row.ms},
                    {"gflop", row.gflop},
                    {"gflops", row.gflops},
                    {"sequential_steps", row.sequential_steps},
                    {"path_length", row.path_length}});
  }
  const nlohmann::ordered_json document = {{"threads", bench.threads},
                                           {"instruction_set", bench.instruction_set},
                                           {"sequences", bench.options.sequences},
                                           {"window", bench.options.window},
                                           {"kernel", bench.options.kernel},
                                           {"rows", std::move(rows)}};
  return document.dump(2) + "\n";
}

void run_layers(LayersFlags& flags, Output& out) {
  if (!flags.out.empty() && !flags.out.ends_with(".svg")) {
    throw Error(ErrorCode::invalid_argument, "--out must end in .svg, got '" + flags.out + "'",
                "heed bench layers --out layers.svg");
  }
  LayersBenchOptions& o = flags.options;
  read_sizes("--length", flags.lengths, o.lengths);
  read_sizes("--width", flags.widths, o.widths);
  o.window = flags.window, o.kernel = flags.kernel, o.sequences = flags.sequences;
  o.threads = flags.threads, o.seed = flags.seed;
  ProgressLine progress;
  o.progress = [&progress](std::string_view layer, int number, int rows) {
    progress.show(std::to_string(number) + "/" + std::to_string(rows) + " " + std::string(layer));
  };
  const LayersBench bench = bench_layers(o);
  progress.clear();
  if (!flags.out.empty()) write_output_file(flags.out, layers_chart(bench));
  out.write(flags.json ? to_json(bench) : to_text(bench));
}

}  // namespace

void add_bench_layers(Command bench) {
  const Command layers =
      bench.add_topic("layers", "Self-attention against recurrent and convolutional layers");
  const auto flags = std::make_shared<LayersFlags>();
  constexpr int kMost = 1 << 16;
  add_texts(layers, "--length", flags->lengths, "N",
            "sequence length; may be repeated (default 64, 128, … 2048)");
  add_texts(layers, "--width", flags->widths, "N", "width; may be repeated (default 256 and 512)");
  add_number(layers, "--window", flags->window, {.min = 1, .max = kMost},
             "window of restricted self-attention, on each side");
  add_number(layers, "--kernel", flags->kernel, {.min = 1, .max = kMost},
             "kernel size of the convolution");
  add_number(layers, "--sequences", flags->sequences, {.min = 1, .max = kMost},
             "sequences per batch");
  add_number(layers, "--seconds", flags->options.seconds_per_row, {.min = 0.001, .max = 3600},
             "measuring time per row");
  add_text(layers, "--out", flags->out, "FILE.svg", "write a chart of time over n");
  add_common_flags(layers, *flags);
  layers.footer(kHelp);
  layers.on_run([flags](Output& out) { run_layers(*flags, out); });
}

}  // namespace heed::cli
