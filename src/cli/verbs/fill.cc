// heed fill: predicts masked tokens.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/line_verb.h"
#include "cli/table.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExample = "echo 'Paris is the [MASK] of France.' | heed fill --model DIR";
constexpr const char* kHelp =
    "A mask is the tokenizer's mask token, [MASK] or <mask>. Prints for each line the masks,\n"
    "separated by tabs; for each mask the most probable tokens with their probabilities.\n"
    "\n"
    "Examples:\n"
    "  echo 'Paris is the [MASK] of France.' | heed fill --model DIR --top 3\n"
    "  heed fill --model DIR --text questions.txt";

struct FillFlags : LineFlags {
  int top = 5;
  bool text = false;
};

std::string to_text(const Filled& filled) {
  std::string text;
  for (const FilledMask& mask : filled.masks) {
    if (!text.empty()) text += '\t';
    for (size_t c = 0; c < mask.candidates.size(); ++c) {
      const Candidate& candidate = mask.candidates[c];
      text += (c > 0 ? " " : "") + candidate.piece + "=" + fixed(candidate.probability, 4);
    }
  }
  return text + "\n";
}

Json to_json(const Filled& filled) {
  Json masks = Json::array();
  for (const FilledMask& mask : filled.masks) {
    Json candidates = Json::array();
    for (const Candidate& candidate : mask.candidates) {
      candidates.push_back({{"id", candidate.id},
                            {"piece", candidate.piece},
                            {"text", candidate.text},
                            {"probability", candidate.probability}});
    }
    masks.push_back({{"token", mask.token},
                     {"span", {mask.span.begin, mask.span.end}},
                     {"candidates", std::move(candidates)}});
  }
  return {{"source", filled.source},
          {"text", filled.text},
          {"masks", std::move(masks)},
          {"tokens", filled.tokens},
          {"truncated", filled.truncated}};
}

void run_fill(const FillFlags& flags, Output& out) {
  const Filler filler(load_model(flags.model, kExample), flags.task_options());
  CutLines cut;
  each_lines(flags, [&](const Lines& lines) {
    std::vector<TaskInput> inputs;
    for (const std::string& text : lines.texts) inputs.push_back({.text = text});
    int64_t number = lines.first;
    for (const Filled& filled :
         filler.fill(inputs, {.top = flags.top, .first_number = lines.first})) {
      out.write(flags.json   ? json_line(to_json(filled))
                : flags.text ? filled.text + "\n"
                             : to_text(filled));
      cut.add(number++, filled);
    }
    out.flush();
  });
  cut.report();
}

}  // namespace

void add_fill(Program& program) {
  const Command fill = program.add_verb("fill", "Predict masked tokens");
  const auto flags = std::make_shared<FillFlags>();
  add_number(fill, "--top", flags->top, {.min = 1, .max = 1000}, "candidates per mask");
  add_switch(fill, "--text", flags->text, "print the text with the most probable tokens filled in");
  add_line_flags(fill, *flags);
  fill.footer(kHelp);
  fill.on_run([flags](Output& out) { run_fill(*flags, out); });
}

}  // namespace heed::cli
