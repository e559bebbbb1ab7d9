// heed eval spans, brackets and perplexity.
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/table.h"
#include "cli/verbs/eval/eval_topics.h"
#include "heed/error.h"
#include "heed/metrics.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSpansHelp =
    "One word per line with columns separated by spaces or tabs, and an empty line after each\n"
    "sentence. As in conlleval, the last two columns are the gold and the predicted tag; with\n"
    "--ref the last column of each file is its tag. Tags are IOB1, IOB2, IOE, IOBES or BILOU:\n"
    "B-PER, I-PER, O.";

constexpr const char* kBracketsHelp =
    "Both files have one Penn Treebank tree per line, or the layout of its files. --params is an "
    "EVALB parameter file such as COLLINS.prm; without it no labels are deleted or treated as "
    "equal. Treebank files have traces (-NONE-), which EVALB counts as words; --clean removes "
    "them, empty phrases and function tags (NP-SBJ becomes NP) on both sides, as training does. "
    "heed parse writes such trees:\n"
    "\n"
    "  heed parse --model runs/parser sentences.txt | heed eval brackets --clean --ref dev.mrg -";

constexpr const char* kPerplexityHelp =
    "FILE has log-probabilities of tokens, any number per line.";

std::vector<std::string> split_columns(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> columns;
  for (std::string column; in >> column;) columns.push_back(column);
  return columns;
}

struct SpansFlags : EvalFlags {
  std::string ref;
  bool raw = false;
  std::string outside = "O";
};

// The tag `from_end` columns from the end of each line, by sentence.
TagSentences read_tags(const std::vector<std::string>& lines, const std::string& path,
                       size_t from_end, const SpansFlags& flags) {
  constexpr const char* kBoundary = "-X-";  // conlleval's alternative sentence boundary
  TagSentences sentences(1);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> columns = split_columns(lines[i]);
    if (columns.empty() || columns.front() == kBoundary) {
      if (!sentences.back().empty()) sentences.emplace_back();
      continue;
    }
    if (columns.size() <= from_end) {
      throw Error(ErrorCode::invalid_argument,
                  shown_path(path) + ":" + std::to_string(i + 1) +
                      ": must have the gold and the predicted tag, got one column",
                  "give the gold tags with --ref");
    }
    std::string tag = columns[columns.size() - 1 - from_end];
    if (tag == flags.outside) {
      tag = "O";
    } else if (flags.raw) {
      tag.insert(0, "B-");
    }
    sentences.back().push_back(tag);
  }
  if (sentences.back().empty()) sentences.pop_back();
  return sentences;
}

std::string to_json(const SpanScore& score) {
  Json types = Json::array();
  for (const LabelScore& type : score.types) {
    types.push_back({{"type", type.label},
                     {"precision", type.precision},
                     {"recall", type.recall},
                     {"f1", type.f1},
                     {"gold", type.gold},
                     {"predicted", type.predicted},
                     {"correct", type.correct}});
  }
  const Json document = {{"score", score.f1},          {"precision", score.precision},
                         {"recall", score.recall},     {"f1", score.f1},
                         {"accuracy", score.accuracy}, {"tokens", score.tokens},
                         {"gold", score.gold},         {"predicted", score.predicted},
                         {"correct", score.correct},   {"types", std::move(types)}};
  return document.dump(2) + "\n";
}

void run_spans(const SpansFlags& flags, Output& out) {
  const std::vector<std::string> lines = read_some_lines(flags.input);
  const TagSentences predicted = read_tags(lines, flags.input, 0, flags);
  const TagSentences gold = flags.ref.empty()
                                ? read_tags(lines, flags.input, 1, flags)
                                : read_tags(read_some_lines(flags.ref), flags.ref, 0, flags);
  const SpanScore score = span_f1(gold, predicted);
  out.write(flags.json ? to_json(score) : score.text());
}

void add_spans(Command eval) {
  const Command topic = eval.add_topic("spans", "F1 of tagged spans (conlleval)");
  const auto flags = std::make_shared<SpansFlags>();
  add_argument(topic, "FILE", flags->input, "predicted tags");
  add_text(topic, "--ref", flags->ref, "FILE", "gold tags, if FILE does not contain them");
  add_switch(topic, "--raw", flags->raw, "tags are types without B- and I-: one span per word");
  add_text(topic, "--outside", flags->outside, "TAG", "tag of words outside spans");
  add_common_flags(topic, *flags);
  topic.footer(kSpansHelp);
  topic.on_run([flags](Output& out) { run_spans(*flags, out); });
}

struct BracketsFlags : EvalFlags {
  std::string ref, params;
  bool clean = false;
};

Json to_json(const BracketSummary& sum) {
  return {{"sentences", sum.sentences},
          {"errors", sum.errors},
          {"skipped", sum.skipped},
          {"valid", sum.valid},
          {"recall", sum.recall},
          {"precision", sum.precision},
          {"f1", sum.f1},
          {"complete_match", sum.complete_match},
          {"average_crossing", sum.average_crossing},
          {"no_crossing", sum.no_crossing},
          {"two_or_less_crossing", sum.two_or_less_crossing},
          {"tagging_accuracy", sum.tagging_accuracy},
          {"matched", sum.matched},
          {"gold", sum.gold},
          {"test", sum.test},
          {"crossing", sum.crossing},
          {"words", sum.words},
          {"correct_tags", sum.correct_tags}};
}

std::string to_json(const BracketScore& score) {
  Json sentences = Json::array();
  for (const BracketSentence& sentence : score.sentences) {
    Json row = {{"length", sentence.length},   {"status", static_cast<int>(sentence.status)},
                {"matched", sentence.matched}, {"gold", sentence.gold},
                {"test", sentence.test},       {"crossing", sentence.crossing},
                {"words", sentence.words},     {"correct_tags", sentence.correct_tags}};
    if (!sentence.problem.empty()) row["problem"] = sentence.problem;
    sentences.push_back(std::move(row));
  }
  Json document = {{"score", score.all.f1}};
  document.update(to_json(score.all));
  document["cutoff_len"] = score.cutoff_len;
  document["up_to_cutoff"] = to_json(score.up_to_cutoff);
  document["per_sentence"] = std::move(sentences);
  return document.dump(2) + "\n";
}

std::vector<std::string> read_some_trees(const std::string& path) {
  std::vector<std::string> trees = read_trees(path);
  if (trees.empty()) throw Error(ErrorCode::invalid_argument, shown_path(path) + " is empty");
  return trees;
}

void run_brackets(const BracketsFlags& flags, Output& out) {
  if (flags.ref.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed eval brackets: --ref is missing",
                "heed eval brackets --ref GOLD [--params FILE] TEST");
  }
  BracketOptions options =
      flags.params.empty() ? BracketOptions{} : read_bracket_options(flags.params);
  options.clean = flags.clean;
  const std::vector<std::string> gold = read_some_trees(flags.ref);
  const std::vector<std::string> test = read_some_trees(flags.input);
  if (gold.size() != test.size()) {
    throw Error(ErrorCode::invalid_argument,
                "files must have the same number of trees: " + shown_path(flags.input) + " has " +
                    std::to_string(test.size()) + ", " + shown_path(flags.ref) + " has " +
                    std::to_string(gold.size()),
                "an empty line stands for a missing tree");
  }
  const BracketScore score = brackets(gold, test, options);
  for (size_t i = 0; i < score.sentences.size(); ++i) {  // as EVALB prints them
    const std::string& problem = score.sentences[i].problem;
    if (!problem.empty()) std::fprintf(stderr, "%zu : %s\n", i + 1, problem.c_str());
  }
  out.write(flags.json ? to_json(score) : score.text());
}

void add_brackets(Command eval) {
  const Command topic = eval.add_topic("brackets", "F1 of brackets of constituency trees (EVALB)");
  const auto flags = std::make_shared<BracketsFlags>();
  add_argument(topic, "FILE", flags->input, "trees to score");
  add_text(topic, "--ref", flags->ref, "FILE", "gold trees");
  add_text(topic, "--params", flags->params, "FILE", "EVALB parameter file");
  add_switch(topic, "--clean", flags->clean, "remove traces and function tags, as training does");
  add_common_flags(topic, *flags);
  topic.footer(kBracketsHelp);
  topic.on_run([flags](Output& out) { run_brackets(*flags, out); });
}

struct PerplexityFlags : EvalFlags {
  std::string base = "e";
};

// Factor from a logarithm of that base to the natural one.
double nats_per_unit(const std::string& base) {
  if (base == "e") return 1;
  if (base == "2") return std::log(2.0);
  if (base == "10") return std::log(10.0);
  throw Error(ErrorCode::invalid_argument, "--base must be e, 2 or 10, got '" + base + "'");
}

void run_perplexity(const PerplexityFlags& flags, Output& out) {
  const double scale = nats_per_unit(flags.base);
  std::vector<double> logs;
  const std::vector<std::string> lines = read_some_lines(flags.input);
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const std::string& number : split_columns(lines[i])) {
      const std::string where = shown_path(flags.input) + ":" + std::to_string(i + 1);
      logs.push_back(scale * parse_number(number, where));
    }
  }
  const Perplexity result = perplexity(logs);
  if (flags.json) {
    const Json document = {{"score", result.perplexity},
                           {"cross_entropy", result.cross_entropy},
                           {"tokens", result.tokens}};
    return out.write(document.dump(2) + "\n");
  }
  out.write("perplexity = " + fixed(result.perplexity, 4) + " (cross-entropy " +
            fixed(result.cross_entropy, 4) + " nats, " + std::to_string(result.tokens) +
            " tokens)\n");
}

void add_perplexity(Command eval) {
  const Command topic = eval.add_topic("perplexity", "Perplexity from log-probabilities");
  const auto flags = std::make_shared<PerplexityFlags>();
  add_argument(topic, "FILE", flags->input, "log-probabilities");
  add_text(topic, "--base", flags->base, "BASE", "base of the logarithms: e, 2 or 10");
  add_common_flags(topic, *flags);
  topic.footer(kPerplexityHelp);
  topic.on_run([flags](Output& out) { run_perplexity(*flags, out); });
}

}  // namespace

void add_eval_structures(Command eval) {
  add_spans(eval);
  add_brackets(eval);
  add_perplexity(eval);
}

}  // namespace heed::cli
