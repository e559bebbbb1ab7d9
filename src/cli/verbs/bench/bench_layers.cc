// heed bench layers: why self-attention.
#include <charconv>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs/bench/bench_topics.h"
#include "heed/bench.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "One layer of each kind that turns sequences of n vectors of width d into as many (Vaswani et\n"
    "al. 2017, table 1). Self-attention is Heed's own, with heads of 64, without and with the\n"
    "products before and after it; recurrent layers and the convolution are oneDNN's.\n"
    "\n"
    "Columns:\n"
    "  n, d     positions of a sequence, and the width of each\n"
    "  ms       best time of one call, for --sequences sequences\n"
    "  GFLOP    operations of that call\n"
    "  steps    what must be done one after the other\n"
    "  path     steps from one position to the one farthest from it\n"
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

// What was given instead of the defaults.
void read_sizes(const std::string& flag, const std::vector<std::string>& texts,
                std::vector<int64_t>& sizes) {
  if (!texts.empty()) sizes.clear();
  for (const std::string& text : texts) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw Error(ErrorCode::invalid_argument, flag + ": '" + text + "' is not a whole number",
                  "give each size by itself: " + flag + " 256 " + flag + " 1024");
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

void write_chart(const std::string& path, const LayersBench& bench) {
  std::ofstream file(path, std::ios::binary);
  file << layers_chart(bench);
  file.close();
  if (!file) {
    throw Error(ErrorCode::invalid_argument, path + " cannot be written",
                "choose a place that can be written");
  }
}

void run_layers(LayersFlags& flags, Output& out) {
  if (!flags.out.empty() && !flags.out.ends_with(".svg")) {
    throw Error(ErrorCode::invalid_argument,
                "--out: expected a name that ends in .svg, found '" + flags.out + "'",
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
  if (!flags.out.empty()) write_chart(flags.out, bench);
  out.write(flags.json ? to_json(bench) : to_text(bench));
}

}  // namespace

void add_bench_layers(Command bench) {
  const Command layers =
      bench.add_topic("layers", "Why self-attention: layers of each kind, over lengths and widths");
  const auto flags = std::make_shared<LayersFlags>();
  constexpr int kMost = 1 << 16;
  add_texts(layers, "--length", flags->lengths, "N", "positions; 64, 128, … 2048 without it");
  add_texts(layers, "--width", flags->widths, "N", "of each position; 256 and 512 without it");
  add_number(layers, "--window", flags->window, {.min = 1, .max = kMost},
             "positions that restricted self-attention sees on each side");
  add_number(layers, "--kernel", flags->kernel, {.min = 1, .max = kMost},
             "positions that the convolution sees");
  add_number(layers, "--sequences", flags->sequences, {.min = 1, .max = kMost},
             "sequences of the batch");
  add_number(layers, "--seconds", flags->options.seconds_per_row, {.min = 0.001, .max = 3600},
             "how long each row is repeated");
  add_text(layers, "--out", flags->out, "FILE.svg", "draw time over n");
  add_common_flags(layers, *flags);
  layers.footer(kHelp);
  layers.on_run([flags](Output& out) { run_layers(*flags, out); });
}

}  // namespace heed::cli
