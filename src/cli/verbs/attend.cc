// heed attend: where the tokens of a text look.
#include "heed/attend.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>

#include "cli/flags.h"
#include "cli/line_verb.h"
#include "cli/program.h"
#include "cli/table.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr const char* kExample = "heed attend --model DIR 'The cat sat.' --out map.html";
constexpr const char* kHelp =
    "SOURCE and TARGET are texts. An encoder-decoder model without a TARGET translates the SOURCE\n"
    "itself. A file that ends in .html is a page to explore, .svg a drawing of all layers and "
    "heads,\n"
    ".json all numbers. Without --out one map is shown here: the last layer's, of cross-attention\n"
    "where there is one, the mean of its heads. Its rows of cross-attention are named after the\n"
    "token being written; in files and with --json after the one before it, which is being read.\n"
    "\n"
    "Examples:\n"
    "  heed attend --model DIR 'The cat sat on the mat.' --out map.html\n"
    "  heed attend --model DIR 'A good day.' 'Ein guter Tag.' --layer 2 --head 3";

struct AttendFlags : CommonFlags {
  std::string model, source, target, out, kind;
  int layer = 0, head = 0;
  int max_tokens = 128;
};

// " " to "█" in five steps, and never nothing for what counts.
const char* shade(float p) {
  constexpr const char* kShades[] = {" ", "░", "▒", "▓", "█"};
  constexpr float kSteps[] = {0.02f, 0.1f, 0.3f, 0.6f};
  return kShades[std::upper_bound(std::begin(kSteps), std::end(kSteps), p) - std::begin(kSteps)];
}

// How many columns a terminal gives a text: one for each code point is near enough here.
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
    throw Error(ErrorCode::invalid_argument, "--kind: this model has no '" + kind + "' attention",
                "encoder, decoder or cross, as far as the model has them");
  }
  const size_t layer = flags.layer > 0 ? static_cast<size_t>(flags.layer) : layers.size();
  if (layer > layers.size()) {
    throw Error(ErrorCode::invalid_argument,
                "--layer: there are " + std::to_string(layers.size()) + " layers, found " +
                    std::to_string(layer),
                "layers count from 1");
  }
  const AttentionLayer& found = *layers[layer - 1];
  if (flags.head > found.heads) {
    throw Error(ErrorCode::invalid_argument,
                "--head: there are " + std::to_string(found.heads) + " heads, found " +
                    std::to_string(flags.head),
                "heads count from 1; 0 is the mean of all");
  }
  return found;
}

// The probabilities of one head, or of head 0 the mean of all.
float probability(const AttentionLayer& layer, int head, int64_t query, int64_t key) {
  if (head > 0) return layer.at(head - 1, query, key);
  float sum = 0;
  for (int h = 0; h < layer.heads; ++h) sum += layer.at(h, query, key);
  return sum / static_cast<float>(layer.heads);
}

// What to call the rows. A decoder that has read a token is about to write the next one, and it is
// that which it looks up in the source: there rows bear the name of what is being written.
std::vector<std::string> row_names(const AttentionView& view, const AttentionLayer& layer) {
  std::vector<std::string> names;
  for (const AttentionToken& token : view.queries(layer.kind)) names.push_back(token.text);
  if (layer.kind != AttentionKind::cross) return names;
  std::rotate(names.begin(), names.begin() + 1, names.end());
  names.back() = view.target_ends ? "(end)" : "…";
  return names;
}

// A row for each query: its name, a shade for each key, and the key that gets the most.
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
      (writes ? "\neach row: a token being written, a column for each of the source, and where it "
                "looks most\n\n"
              : "\neach row: a token, a column for each token it can look at, and where it looks "
                "most\n\n");
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

void write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (!file) {
    throw Error(ErrorCode::invalid_argument, path + " cannot be written",
                "choose a place that can be written");
  }
}

void run_attend(const AttendFlags& flags, Output& out) {
  if (flags.source.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed attend: SOURCE, a text, is missing", kExample);
  }
  const bool html = flags.out.ends_with(".html"), svg = flags.out.ends_with(".svg");
  if (!flags.out.empty() && !html && !svg && !flags.out.ends_with(".json")) {
    throw Error(
        ErrorCode::invalid_argument,
        "--out: expected a name that ends in .html, .svg or .json, found '" + flags.out + "'",
        kExample);
  }
  TaskInput input{.text = flags.source};
  if (!flags.target.empty()) input.second = flags.target;
  const AttentionView view = attend(load_model(flags.model, kExample), input,
                                    {.threads = flags.threads, .max_tokens = flags.max_tokens});
  if (view.truncated) {
    std::fprintf(stderr, "warning: the text has more than %d tokens and was cut (--max-tokens)\n",
                 flags.max_tokens);
  }
  if (flags.out.empty()) {
    out.write(flags.json ? attention_json(view) : map_text(view, flags));
    return;
  }
  write_file(flags.out, html  ? attention_html(view, flags.source)
                        : svg ? attention_svg(view, flags.source)
                              : attention_json(view));
  if (flags.json) out.write(attention_json(view));
}

}  // namespace

void add_attend(Program& program) {
  const Command attend = program.add_verb("attend", "Show where the tokens of a text look");
  const auto flags = std::make_shared<AttendFlags>();
  add_text(attend, "--model", flags->model, "DIR", "a model folder");
  add_argument(attend, "SOURCE", flags->source, "a text");
  add_argument(attend, "TARGET", flags->target, "its translation, for encoder-decoder models");
  add_text(attend, "--out", flags->out, "FILE", "write FILE.html, FILE.svg or FILE.json");
  add_text(attend, "--kind", flags->kind, "NAME", "of the map shown here: encoder, decoder, cross");
  add_number(attend, "--layer", flags->layer, {.min = 0, .max = 10000},
             "of the map shown here, from 1; 0 is the last");
  add_number(attend, "--head", flags->head, {.min = 0, .max = 10000},
             "of the map shown here, from 1; 0 is the mean of all");
  add_number(attend, "--max-tokens", flags->max_tokens, {.min = 1, .max = 4096},
             "cut texts to so many tokens");
  add_common_flags(attend, *flags);
  attend.footer(kHelp);
  attend.on_run([flags](Output& out) { run_attend(*flags, out); });
}

}  // namespace heed::cli
