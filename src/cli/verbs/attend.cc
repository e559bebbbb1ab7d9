// heed attend: attention weights of a text.
#include "heed/attend.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/files/atomic_file.h"
#include "cli/flags.h"
#include "cli/line_verb.h"
#include "cli/program.h"
#include "cli/table.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr const char* kExample = "heed attend --model DIR 'The cat sat.' --out map.html";
constexpr const char* kHelp =
    "An encoder-decoder model without TARGET uses its own translation of SOURCE. --out writes an\n"
    "interactive page (.html), a drawing of all layers and heads (.svg) or all weights (.json).\n"
    "Without --out one map is printed: the last layer's, cross-attention where there is any, the\n"
    "mean of the heads. Printed rows of cross-attention are named after the predicted token; in\n"
    "files and with --json after the decoder's input token.\n"
    "\n"
    "Examples:\n"
    "  heed attend --model DIR 'The cat sat on the mat.' --out map.html\n"
    "  heed attend --model DIR 'A good day.' 'Ein guter Tag.' --layer 2 --head 3";

struct AttendFlags : CommonFlags {
  std::string model, source, target, out, kind;
  int layer = 0, head = 0;
  int max_tokens = 128;
};

// Five shades from " " to "█".
const char* shade(float p) {
  constexpr const char* kShades[] = {" ", "░", "▒", "▓", "█"};
  constexpr float kSteps[] = {0.02f, 0.1f, 0.3f, 0.6f};
  return kShades[std::upper_bound(std::begin(kSteps), std::end(kSteps), p) - std::begin(kSteps)];
}

// Terminal columns of a text, approximated by its code points.
size_t columns(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width) {
  const size_t used = columns(text);
  return std::string(width > used ? width - used : 0, ' ') + text;
}

const AttentionLayer& chosen_layer(const AttentionView& view, const AttendFlags& flags) {
  const std::string kind =
      flags.kind.empty() ? std::string(name_of(view.layers.back().kind)) : flags.kind;
  std::vector<const AttentionLayer*> layers;
  for (const AttentionLayer& layer : view.layers) {
    if (kind == name_of(layer.kind)) layers.push_back(&layer);
  }
  if (layers.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "--kind must be a kind of attention that the model has, got '" + kind + "'",
                "encoder, decoder or cross, depending on the model");
  }
  const size_t layer = flags.layer > 0 ? static_cast<size_t>(flags.layer) : layers.size();
  if (layer > layers.size()) {
    throw Error(ErrorCode::invalid_argument,
                "--layer must be at most " + std::to_string(layers.size()) + ", got " +
                    std::to_string(layer),
                "layers count from 1");
  }
  const AttentionLayer& found = *layers[layer - 1];
  if (flags.head > found.heads) {
    throw Error(ErrorCode::invalid_argument,
                "--head must be at most " + std::to_string(found.heads) + ", got " +
                    std::to_string(flags.head),
                "heads count from 1; 0: the mean of all");
  }
  return found;
}

// The weight of one head; head 0: the mean of all.
float probability(const AttentionLayer& layer, int head, int64_t query, int64_t key) {
  if (head > 0) return layer.at(head - 1, query, key);
  float sum = 0;
  for (int h = 0; h < layer.heads; ++h) sum += layer.at(h, query, key);
  return sum / static_cast<float>(layer.heads);
}

// The row names. Cross-attention rows are named after the token that is predicted, the one after the
// decoder's input token.
std::vector<std::string> row_names(const AttentionView& view, const AttentionLayer& layer) {
  std::vector<std::string> names;
  for (const AttentionToken& token : view.queries(layer.kind)) names.push_back(token.text);
  if (layer.kind != AttentionKind::cross) return names;
  std::rotate(names.begin(), names.begin() + 1, names.end());
  names.back() = view.target_ends ? "(end)" : "…";
  return names;
}

// One row per query: its name, a shade per key, and the key with the largest weight.
std::string map_text(const AttentionView& view, const AttendFlags& flags) {
  const AttentionLayer& layer = chosen_layer(view, flags);
  const std::vector<std::string> names = row_names(view, layer);
  const auto& keys = view.keys(layer.kind);
  size_t width = 0;
  for (const std::string& row : names) width = std::max(width, columns(row));
  const bool writes = layer.kind == AttentionKind::cross;
  std::string text =
      std::string(name_of(layer.kind)) + " attention, layer " + std::to_string(layer.layer + 1) +
      (flags.head > 0 ? ", head " + std::to_string(flags.head)
                      : ", mean of " + std::to_string(layer.heads) + " heads") +
      (writes ? "\nrows: predicted tokens; columns: source tokens; right: the largest weight\n\n"
              : "\nrows: queries; columns: keys; right: the largest weight\n\n");
  for (int64_t q = 0; q < layer.queries; ++q) {
    text += padded(names[static_cast<size_t>(q)], width) + " │";
    int64_t best = 0;
    for (int64_t k = 0; k < layer.keys; ++k) {
      const float p = probability(layer, flags.head, q, k);
      text += std::string(shade(p)) + shade(p);
      if (p > probability(layer, flags.head, q, best)) best = k;
    }
    text += "│ " + keys[static_cast<size_t>(best)].text + " " +
            fixed(100.0 * probability(layer, flags.head, q, best), 0) + " %\n";
  }
  return text + "\n" + std::string("shades: ░ 2 %  ▒ 10 %  ▓ 30 %  █ 60 % and more\n");
}

void run_attend(const AttendFlags& flags, Output& out) {
  if (flags.source.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed attend: SOURCE is missing", kExample);
  }
  const bool html = flags.out.ends_with(".html"), svg = flags.out.ends_with(".svg");
  if (!flags.out.empty() && !html && !svg && !flags.out.ends_with(".json")) {
    throw Error(ErrorCode::invalid_argument,
                "--out must end in .html, .svg or .json, got '" + flags.out + "'", kExample);
  }
  TaskInput input{.text = flags.source};
  if (!flags.target.empty()) input.second = flags.target;
  const AttentionView view = attend(load_model(flags.model, kExample), input,
                                    {.threads = flags.threads, .max_tokens = flags.max_tokens});
  if (view.truncated) {
    std::fprintf(stderr,
                 "warning: the text has more than %d tokens and was truncated (--max-tokens)\n",
                 flags.max_tokens);
  }
  if (flags.out.empty()) {
    out.write(flags.json ? attention_json(view) : map_text(view, flags));
    return;
  }
  write_output_file(flags.out, html  ? attention_html(view, flags.source)
                               : svg ? attention_svg(view, flags.source)
                                     : attention_json(view));
  if (flags.json) out.write(attention_json(view));
}

}  // namespace

void add_attend(Program& program) {
  const Command attend = program.add_verb("attend", "Show the attention weights of a text");
  const auto flags = std::make_shared<AttendFlags>();
  add_text(attend, "--model", flags->model, "DIR", "model folder");
  add_argument(attend, "SOURCE", flags->source, "source text");
  add_argument(attend, "TARGET", flags->target, "target text, for encoder-decoder models");
  add_text(attend, "--out", flags->out, "FILE", "write FILE.html, FILE.svg or FILE.json");
  add_text(attend, "--kind", flags->kind, "NAME", "attention to print: encoder, decoder or cross");
  add_number(attend, "--layer", flags->layer, {.min = 0, .max = 10000},
             "layer to print, from 1; 0: the last");
  add_number(attend, "--head", flags->head, {.min = 0, .max = 10000},
             "head to print, from 1; 0: the mean of all");
  add_number(attend, "--max-tokens", flags->max_tokens, {.min = 1, .max = 4096},
             "truncate texts to N tokens");
  add_common_flags(attend, *flags);
  attend.footer(kHelp);
  attend.on_run([flags](Output& out) { run_attend(*flags, out); });
}

}  // namespace heed::cli
