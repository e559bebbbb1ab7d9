// heed quantize: a model in fewer bytes, and what that costs and gains.
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/flags.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "heed/engine.h"
#include "heed/error.h"
#include "heed/metrics.h"
#include "heed/models.h"
#include "heed/tasks.h"
#include "heed/text_file.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    "int8: a scale for each output, and activations rounded to 8 bits row by row; a quarter of "
    "the\n"
    "bytes. f16: half of them, a plain folder that others read too. int4: a scale for each 32 "
    "inputs;\n"
    "a seventh. Norms, biases and positions stay as they are; matrices that --keep-wide finds "
    "become\n"
    "f16 (their names are those of the report).\n"
    "\n"
    "--eval compares both models: for translation give two files, sources and references (BLEU); "
    "for\n"
    "a language model a text (perplexity); for a classifier lines of text, tab, label (accuracy).\n"
    "\n"
    "Examples:\n"
    "  heed quantize --model DIR --out DIR8\n"
    "  heed quantize --model DIR --out DIR4 --type int4 --keep-wide 'output|tokens'\n"
    "  heed quantize --model DIR --out DIR8 --eval test.en --eval test.de";

struct QuantizeFlags : CommonFlags {
  std::string model, out;
  QuantizeOptions options;
  std::vector<std::string> eval;
};

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  LineReader reader(path);
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

// How good a model is at something, and how fast.
struct Quality {
  double value = 0;
  double seconds = 0;
  int64_t tokens = 0;

  double tokens_per_second() const {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
};

// What --eval measures, chosen by what the model is. Files are read before anything is written.
class Evaluation {
 public:
  Evaluation(const Model& model, const QuantizeFlags& flags) : threads_(flags.threads) {
    const size_t files = model.can_generate() && model.has_source() ? 2 : 1;
    const bool classifies = model.head() == "classifier";
    if (!model.can_generate() && !classifies) {
      throw Error(ErrorCode::unsupported,
                  "--eval: the model is an " + model.family() + " with the head " + model.head(),
                  "it is for translation, language models and classifiers; quantize without it");
    }
    if (flags.eval.size() != files) {
      throw Error(ErrorCode::invalid_argument,
                  "--eval: expected " + std::to_string(files) + (files == 1 ? " file" : " files") +
                      ", found " + std::to_string(flags.eval.size()),
                  files == 2 ? "sources and references: --eval test.en --eval test.de"
                             : "one text: --eval test.txt");
    }
    lines_ = lines_of(flags.eval[0]);
    if (files == 2) references_ = lines_of(flags.eval[1]);
    if (lines_.empty() || (files == 2 && lines_.size() != references_.size())) {
      throw Error(
          ErrorCode::invalid_argument,
          "--eval: " + flags.eval[0] + " has " + std::to_string(lines_.size()) + " lines" +
              (files == 2 ? ", " + flags.eval[1] + " " + std::to_string(references_.size()) : ""),
          files == 2 ? "both need the same number of lines, a pair each" : "give a text");
    }
    if (classifies) split_labels(flags.eval[0]);
    metric_ = files == 2 ? "BLEU" : classifies ? "accuracy" : "perplexity";
  }

  const std::string& metric() const { return metric_; }

  Quality of(const Model& model) const {
    const auto start = std::chrono::steady_clock::now();
    Quality quality = metric_ == "BLEU"         ? translation(model)
                      : metric_ == "perplexity" ? language(model)
                                                : labels(model);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    quality.seconds = time.count();
    return quality;
  }

 private:
  // "text<tab>label" to a text and a label.
  void split_labels(const std::string& path) {
    for (size_t i = 0; i < lines_.size(); ++i) {
      const size_t tab = lines_[i].rfind('\t');
      if (tab == std::string::npos) {
        throw Error(ErrorCode::invalid_argument,
                    path + ":" + std::to_string(i + 1) + ": there is no tab",
                    "a line is the text, a tab, and the label's name");
      }
      references_.push_back(lines_[i].substr(tab + 1));
      lines_[i].resize(tab);
    }
  }

  Quality translation(const Model& model) const {
    SearchOptions search = model.search_options();  // heed translate's
    if (!model.has_setting("num_beams")) search.beam = 4;
    if (!model.has_setting("length_penalty")) search.length_penalty = 0.6;
    Translator translator(model, {.threads = threads_});
    std::vector<std::string> hypotheses;
    translator.translate(lines_, {.search = search}, [&](size_t, Translation&& translation) {
      hypotheses.push_back(std::move(translation.text));
    });
    return {.value = bleu(hypotheses, as_references({references_})).score,
            .tokens = translator.engine().statistics().new_tokens};
  }

  Quality language(const Model& model) const {
    std::string text;
    for (const std::string& line : lines_) text += (text.empty() ? "" : "\n") + line;
    const Scorer scorer(model, {.threads = threads_});
    const std::vector<Scored> scored = scorer.score({{.text = text}});
    return {.value = scored.front().perplexity(), .tokens = std::ssize(scored.front().ids)};
  }

  Quality labels(const Model& model) const {
    const Classifier classifier(model, {.threads = threads_});
    std::vector<TaskInput> inputs;
    for (const std::string& line : lines_) inputs.push_back({.text = line});
    const std::vector<Classified> found = classifier.classify(inputs);
    int64_t right = 0, tokens = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      right += found[i].name == references_[i] ? 1 : 0;
      tokens += found[i].tokens;
    }
    return {.value = static_cast<double>(right) / static_cast<double>(found.size()),
            .tokens = tokens};
  }

  int threads_;
  std::string metric_;
  std::vector<std::string> lines_, references_;
};

struct Comparison {
  std::string metric;
  Quality before, after;
};

std::string megabytes(int64_t bytes) { return fixed(static_cast<double>(bytes) / 1e6, 1) + " MB"; }

std::string to_text(const QuantizeReport& report, const std::optional<Comparison>& eval) {
  Table layers({{"weight"},
                {"type"},
                {"shape", Align::right},
                {"KB", Align::right},
                {"error", Align::right}});
  for (const QuantizedLayer& layer : report.layers) {
    layers.add_row({layer.name, layer.type,
                    std::to_string(layer.rows) + "x" + std::to_string(layer.cols),
                    fixed(static_cast<double>(layer.bytes) / 1e3, 1),
                    fixed(100 * layer.relative_error, 3) + " %"});
  }
  std::string text = layers.text() + "\nparameters  " + std::to_string(report.parameters) +
                     "\ntensors     " + megabytes(report.bytes_before) + " -> " +
                     megabytes(report.bytes_after) + "\n";
  if (eval) {
    const std::string label = eval->metric + std::string(12 - eval->metric.size(), ' ');
    text += label + fixed(eval->before.value, 4) + " -> " + fixed(eval->after.value, 4) + "\n" +
            "tokens/s    " + fixed(eval->before.tokens_per_second(), 1) + " -> " +
            fixed(eval->after.tokens_per_second(), 1) + "\n";
  }
  return text;
}

Json to_json(const QuantizeReport& report, const QuantizeFlags& flags,
             const std::optional<Comparison>& eval) {
  Json layers = Json::array();
  for (const QuantizedLayer& layer : report.layers) {
    layers.push_back({{"name", layer.name},
                      {"type", layer.type},
                      {"shape", {layer.rows, layer.cols}},
                      {"bytes", layer.bytes},
                      {"relative_error", layer.relative_error}});
  }
  Json document = {{"out", flags.out},
                   {"type", flags.options.type},
                   {"parameters", report.parameters},
                   {"bytes_before", report.bytes_before},
                   {"bytes_after", report.bytes_after},
                   {"layers", std::move(layers)}};
  if (eval) {
    document["eval"] = {{"metric", eval->metric},
                        {"before", eval->before.value},
                        {"after", eval->after.value},
                        {"tokens_per_second_before", eval->before.tokens_per_second()},
                        {"tokens_per_second_after", eval->after.tokens_per_second()}};
  }
  return document;
}

void run_quantize(const QuantizeFlags& flags, Output& out) {
  for (const auto& [flag, value] : {std::pair{"--model", flags.model}, {"--out", flags.out}}) {
    if (value.empty()) {
      throw Error(ErrorCode::invalid_argument,
                  std::string("heed quantize: ") + flag + " is missing",
                  "heed quantize --model DIR --out DIR [--type int8]");
    }
  }
  ProgressLine progress;
  std::optional<Comparison> eval;
  std::optional<Evaluation> evaluation;
  if (!flags.eval.empty()) {
    const Model model = Model::load(flags.model);
    evaluation.emplace(model, flags);
    progress.show("evaluating " + flags.model);
    eval = Comparison{evaluation->metric(), evaluation->of(model), {}};
  }
  progress.show("quantizing");
  QuantizeOptions options = flags.options;
  options.threads = flags.threads;
  const QuantizeReport report = quantize_model(flags.model, flags.out, options);
  if (evaluation) {
    progress.show("evaluating " + flags.out);
    eval->after = evaluation->of(Model::load(flags.out));
  }
  progress.clear();
  out.write(flags.json ? to_json(report, flags, eval).dump(2) + "\n" : to_text(report, eval));
}

}  // namespace

void add_quantize(Program& program) {
  CLI::App& quantize = program.add_command(
      program.heed(), "quantize", "Write a model in fewer bytes, and compare: int8, f16 or int4");
  const auto flags = std::make_shared<QuantizeFlags>();
  add_text(quantize, "--model", flags->model, "DIR", "the model folder to read");
  add_text(quantize, "--out", flags->out, "DIR", "the folder to write");
  add_text(quantize, "--type", flags->options.type, "TYPE", "int8, f16 or int4");
  add_text(quantize, "--keep-wide", flags->options.keep_wide, "REGEX",
           "matrices whose names it finds something in become f16");
  add_texts(quantize, "--eval", flags->eval, "FILE", "compare the models' quality and speed on it");
  add_common_flags(quantize, *flags);
  quantize.footer(kHelp);
  program.on_run(quantize, [flags](Output& out) { run_quantize(*flags, out); });
}

}  // namespace heed::cli
