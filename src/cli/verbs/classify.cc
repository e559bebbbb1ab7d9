// heed classify: a label or a score per text.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/line_verb.h"
#include "cli/table.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExample = "heed classify --model DIR reviews.txt";
constexpr const char* kHelp =
    "Prints for each line the label, a tab and its probability; for a regression model the score.\n"
    "\n"
    "Examples:\n"
    "  heed classify --model DIR reviews.txt | heed eval accuracy --column 1 --ref labels.txt\n"
    "  printf 'A man sleeps.\\tEveryone is awake.\\n' | heed classify --model DIR --pair --all";

struct ClassifyFlags : LineFlags {
  bool pair = false, all = false;
};

std::string to_text(const Classified& result, const Classifier& classifier, bool all) {
  if (result.tokens == 0) return "\n";
  std::string text;
  if (classifier.is_regression()) {
    for (const float score : result.logits) text += (text.empty() ? "" : "\t") + shortest(score);
  } else if (all) {
    for (size_t l = 0; l < result.probabilities.size(); ++l) {
      text +=
          (l > 0 ? "\t" : "") + classifier.labels()[l] + "=" + fixed(result.probabilities[l], 4);
    }
  } else {
    text = result.name + "\t" + fixed(result.probabilities[static_cast<size_t>(result.label)], 4);
  }
  return text + "\n";
}

Json to_json(const Classified& result, const Classifier& classifier) {
  Json json = Json::object();
  if (classifier.is_regression()) {
    json["scores"] = result.logits;
  } else {
    json["label"] = result.label >= 0 ? Json(result.name) : Json();
    Json probabilities = Json::object();
    for (size_t l = 0; l < result.probabilities.size(); ++l) {
      probabilities[classifier.labels()[l]] = result.probabilities[l];
    }
    json["probabilities"] = std::move(probabilities);
    json["logits"] = result.logits;
  }
  json["tokens"] = result.tokens;
  json["truncated"] = result.truncated;
  return json;
}

// Of a model of pairs, one text alone would get a label or a score that means nothing.
TaskInput pair_for_model(const std::string& line, int64_t number) {
  if (line.find('\t') == line.npos) {
    throw Error(ErrorCode::invalid_argument,
                "line " + std::to_string(number) +
                    ": the model was trained on pairs of texts, got one text",
                "each line is a pair: first<tab>second");
  }
  return split_pair(line, number);
}

void run_classify(const ClassifyFlags& flags, Output& out) {
  const Model model = load_model(flags.model, kExample);
  const Classifier classifier(model, flags.task_options());
  CutLines cut;
  each_lines(flags, [&](const Lines& lines) {
    std::vector<TaskInput> inputs;
    int64_t number = lines.first;
    for (const std::string& text : lines.texts) {
      const bool is_pair = model.takes_pairs() && !text.empty();
      inputs.push_back(flags.pair ? split_pair(text, number)
                       : is_pair  ? pair_for_model(text, number)
                                  : TaskInput{.text = text});
      ++number;
    }
    number = lines.first;
    for (const Classified& result : classifier.classify(inputs)) {
      out.write(flags.json ? json_line(to_json(result, classifier))
                           : to_text(result, classifier, flags.all));
      cut.add(number++, result);
    }
    out.flush();
  });
  cut.report();
}

}  // namespace

void add_classify(Program& program) {
  const Command classify =
      program.add_verb("classify", "Classify texts, or score them by regression");
  const auto flags = std::make_shared<ClassifyFlags>();
  add_switch(classify, "--pair", flags->pair,
             "each line is two texts separated by a tab (default for models trained on pairs)");
  add_switch(classify, "--all", flags->all, "print every label with its probability");
  add_line_flags(classify, *flags);
  classify.footer(kHelp);
  classify.on_run([flags](Output& out) { run_classify(*flags, out); });
}

}  // namespace heed::cli
