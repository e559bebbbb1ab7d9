// heed eval accuracy, f1, matthews, pearson and spearman: one label or number per line.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "cli/verbs/eval/eval_topics.h"
#include "heed/error.h"
#include "heed/metrics.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    "Line N of FILE is compared with line N of --ref. --column and --ref-column select a\n"
    "tab-separated column.";

struct PairFlags : EvalFlags {
  std::string ref;
  int column = 0, ref_column = 0;
};

void add_pair_flags(Command topic, PairFlags& flags) {
  add_argument(topic, "FILE", flags.input, "predictions, one per line");
  add_text(topic, "--ref", flags.ref, "FILE", "references, one per line");
  add_number(topic, "--column", flags.column, {.min = 0, .max = 1000},
             "column of FILE, from 1; 0: the whole line");
  add_number(topic, "--ref-column", flags.ref_column, {.min = 0, .max = 1000},
             "column of --ref, from 1; 0: the whole line");
  add_common_flags(topic, flags);
  topic.footer(kHelp);
}

// Column `column` of each line, or the line.
std::vector<std::string> read_column(const std::string& path, int column) {
  std::vector<std::string> lines = read_some_lines(path);
  if (column == 0) return lines;
  for (size_t i = 0; i < lines.size(); ++i) {
    size_t begin = 0;
    for (int c = 1; c < column && begin != std::string::npos; ++c) {
      const size_t tab = lines[i].find('\t', begin);
      begin = tab == std::string::npos ? tab : tab + 1;
    }
    if (begin == std::string::npos) {
      throw Error(ErrorCode::invalid_argument,
                  shown_path(path) + ":" + std::to_string(i + 1) + ": must have a column " +
                      std::to_string(column),
                  "columns are separated by tabs and count from 1");
    }
    const size_t end = std::min(lines[i].find('\t', begin), lines[i].size());
    lines[i] = lines[i].substr(begin, end - begin);
  }
  return lines;
}

struct Pairs {
  std::vector<std::string> gold, predicted;
};

Pairs read_pairs(const PairFlags& flags) {
  if (flags.ref.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed eval: --ref is missing",
                "heed eval accuracy --ref GOLD PREDICTED");
  }
  Pairs pairs{.gold = read_column(flags.ref, flags.ref_column),
              .predicted = read_column(flags.input, flags.column)};
  check_line_counts(flags.input, pairs.predicted.size(), flags.ref, pairs.gold.size());
  return pairs;
}

std::vector<double> to_numbers(const std::vector<std::string>& lines, const std::string& path) {
  std::vector<double> numbers;
  for (size_t i = 0; i < lines.size(); ++i) {
    numbers.push_back(parse_number(lines[i], shown_path(path) + ":" + std::to_string(i + 1)));
  }
  return numbers;
}

ClassificationScore score_pairs(const PairFlags& flags) {
  const Pairs pairs = read_pairs(flags);
  return classification(pairs.gold, pairs.predicted);
}

void add_accuracy(Command eval) {
  const Command topic = eval.add_topic("accuracy", "Accuracy of labels");
  const auto flags = std::make_shared<PairFlags>();
  add_pair_flags(topic, *flags);
  topic.on_run([flags](Output& out) {
    const ClassificationScore score = score_pairs(*flags);
    int64_t correct = 0;
    for (const LabelScore& label : score.labels) correct += label.correct;
    if (flags->json) {
      const Json document = {
          {"score", score.accuracy}, {"correct", correct}, {"items", score.items}};
      return out.write(document.dump(2) + "\n");
    }
    out.write("accuracy = " + fixed(score.accuracy, 4) + " (" + std::to_string(correct) + " of " +
              std::to_string(score.items) + ")\n");
  });
}

struct F1Flags : PairFlags {
  std::string average = "macro";
  std::string positive;
};

Json to_json(const AverageScore& score) {
  return {{"precision", score.precision}, {"recall", score.recall}, {"f1", score.f1}};
}

// The requested average, or the score of the --positive label.
AverageScore chosen_average(const F1Flags& flags, const ClassificationScore& score) {
  if (!flags.positive.empty()) {
    for (const LabelScore& label : score.labels) {
      if (label.label == flags.positive) return {label.precision, label.recall, label.f1};
    }
    throw Error(ErrorCode::invalid_argument,
                "--positive must be a label of the files, got '" + flags.positive + "'");
  }
  if (flags.average == "macro") return score.macro;
  if (flags.average == "micro") return score.micro;
  if (flags.average == "weighted") return score.weighted;
  throw Error(ErrorCode::invalid_argument,
              "--average must be macro, micro or weighted, got '" + flags.average + "'");
}

std::string to_text(const ClassificationScore& score) {
  Table table({{"label"},
               {"precision", Align::right},
               {"recall", Align::right},
               {"f1", Align::right},
               {"gold", Align::right},
               {"predicted", Align::right}});
  for (const LabelScore& label : score.labels) {
    table.add_row({label.label, fixed(label.precision, 4), fixed(label.recall, 4),
                   fixed(label.f1, 4), std::to_string(label.gold),
                   std::to_string(label.predicted)});
  }
  return table.text();
}

void run_f1(const F1Flags& flags, Output& out) {
  const ClassificationScore score = score_pairs(flags);
  const AverageScore chosen = chosen_average(flags, score);
  const std::string name = flags.positive.empty() ? flags.average : "label " + flags.positive;
  if (!flags.json) {
    return out.write("F1 (" + name + ") = " + fixed(chosen.f1, 4) + " (precision " +
                     fixed(chosen.precision, 4) + ", recall " + fixed(chosen.recall, 4) + ")\n\n" +
                     to_text(score));
  }
  Json labels = Json::array();
  for (const LabelScore& label : score.labels) {
    labels.push_back({{"label", label.label},
                      {"precision", label.precision},
                      {"recall", label.recall},
                      {"f1", label.f1},
                      {"gold", label.gold},
                      {"predicted", label.predicted},
                      {"correct", label.correct}});
  }
  const Json document = {{"score", chosen.f1},
                         {"precision", chosen.precision},
                         {"recall", chosen.recall},
                         {"average", name},
                         {"macro", to_json(score.macro)},
                         {"micro", to_json(score.micro)},
                         {"weighted", to_json(score.weighted)},
                         {"accuracy", score.accuracy},
                         {"labels", std::move(labels)}};
  out.write(document.dump(2) + "\n");
}

void add_f1(Command eval) {
  const Command topic = eval.add_topic("f1", "F1 of labels: macro, micro, weighted");
  const auto flags = std::make_shared<F1Flags>();
  add_pair_flags(topic, *flags);
  add_text(topic, "--average", flags->average, "NAME", "macro, micro or weighted");
  add_text(topic, "--positive", flags->positive, "LABEL", "F1 of this label only");
  topic.on_run([flags](Output& out) { run_f1(*flags, out); });
}

void add_matthews(Command eval) {
  const Command topic = eval.add_topic("matthews", "Matthews correlation of labels");
  const auto flags = std::make_shared<PairFlags>();
  add_pair_flags(topic, *flags);
  topic.on_run([flags](Output& out) {
    const ClassificationScore score = score_pairs(*flags);
    if (flags->json) {
      const Json document = {{"score", score.matthews}, {"items", score.items}};
      return out.write(document.dump(2) + "\n");
    }
    out.write("Matthews = " + fixed(score.matthews, 4) + "\n");
  });
}

struct Correlation {
  const char* topic;
  const char* title;  // in the output
  const char* summary;
  double (*measure)(std::span<const double>, std::span<const double>);
};

void add_correlation(Command eval, const Correlation& correlation) {
  const Command topic = eval.add_topic(correlation.topic, correlation.summary);
  const auto flags = std::make_shared<PairFlags>();
  add_pair_flags(topic, *flags);
  topic.on_run([flags, correlation](Output& out) {
    const Pairs pairs = read_pairs(*flags);
    const double score = correlation.measure(to_numbers(pairs.gold, flags->ref),
                                             to_numbers(pairs.predicted, flags->input));
    if (flags->json) {  // undefined correlations are null
      const Json document = {{"score", score}, {"items", pairs.gold.size()}};
      return out.write(document.dump(2) + "\n");
    }
    out.write(std::string(correlation.title) + " = " + fixed(score, 4) + "\n");
  });
}

}  // namespace

void add_eval_labels(Command eval) {
  add_accuracy(eval);
  add_f1(eval);
  add_matthews(eval);
  add_correlation(eval, {.topic = "pearson",
                         .title = "Pearson",
                         .summary = "Pearson correlation",
                         .measure = pearson});
  add_correlation(eval, {.topic = "spearman",
                         .title = "Spearman",
                         .summary = "Spearman rank correlation",
                         .measure = spearman});
}

}  // namespace heed::cli
