// heed quantize: quantizes weights and compares quality and speed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files/text_file.h"
#include "cli/flags.h"
#include "cli/out_folder.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "heed/engine.h"
#include "heed/error.h"
#include "heed/metrics.h"
#include "heed/model_files.h"
#include "heed/tasks.h"
#include "heed/translate.h"

namespace heed::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    "\n"
    "With integer types, norms, biases and positions stay f32; with 16-bit floats they are "
    "rounded\n"
    "too. Matrices that match --keep-wide become f16 (for names see the report).\n"
    "\n"
    "--out must be a new or empty folder, or one that this command wrote; --force overwrites any\n"
    "model.\n"
    "\n"
    "--eval compares both models: for translation give sources and references (BLEU), for a\n"
    "language model texts (perplexity), for a classifier lines of text<tab>label (accuracy).\n"
    "\n"
    "Examples:\n"
    "  heed quantize --model DIR --out DIR8\n"
    "  heed quantize --model DIR --out DIR4 --type int4 --keep-wide 'output|tokens'\n"
    "  heed quantize --model DIR --out DIR8 --eval test.en test.de";

struct QuantizeFlags : CommonFlags {
  std::string model, out;
  QuantizeOptions options;
  std::vector<std::string> eval;
  bool force = false;
};

// Whether config.json says that this command wrote the folder. It does not for f16.
bool is_quantized(const fs::path& folder) {
  std::ifstream file(folder / "config.json");
  const Json config = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("quantization")) return false;
  const Json& entry = config["quantization"];
  return entry.is_object() && entry.contains("format") && entry["format"] == "heed";
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  LineReader reader(path);
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

// Quality and speed of a model.
struct Quality {
  double value = 0;
  double seconds = 0;
  int64_t tokens = 0;

  double tokens_per_second() const {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
};

// The metric of --eval, chosen by the kind of model. Files are read before anything is written.
class Evaluation {
 public:
  Evaluation(const Model& model, const QuantizeFlags& flags) : threads_(flags.threads) {
    const bool translates = model.can_generate() && model.has_source();
    const bool classifies = model.head() == "classifier";
    if (!model.can_generate() && !classifies) {
      throw Error(ErrorCode::unsupported,
                  "--eval does not support a model of family " + model.family() + " with head " +
                      model.head(),
                  "supported: translation, language models and classifiers");
    }
    metric_ = translates ? "BLEU" : classifies ? "accuracy" : "perplexity";
    if (translates) {
      read_pairs(flags.eval);
    } else {
      for (const std::string& path : flags.eval) classifies ? read_labels(path) : read_text(path);
    }
    const auto is_blank = [](const std::string& text) {
      return text.find_first_not_of(" \t\r\n") == std::string::npos;
    };
    if (std::ranges::all_of(texts_, is_blank)) refuse(flags.eval[0] + " must not be empty");
    if (metric_ != "perplexity") return;
    for (size_t i = 0; i < texts_.size(); ++i) {
      // The first token has no probability.
      if (model.tokenizer().encode_ids(texts_[i]).size() < 2) {
        refuse(flags.eval[i] + " must have at least two tokens");
      }
    }
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
  [[noreturn]] static void refuse(const std::string& why) {
    throw Error(ErrorCode::invalid_argument, "--eval: " + why, "give a text file");
  }

  // Sources and one or more references.
  void read_pairs(const std::vector<std::string>& files) {
    if (files.size() < 2) {
      throw Error(ErrorCode::invalid_argument, "--eval must be at least 2 files, got 1",
                  "sources and references: --eval test.en test.de");
    }
    texts_ = lines_of(files[0]);
    for (size_t i = 1; i < files.size(); ++i) {
      references_.push_back(lines_of(files[i]));
      if (references_.back().size() == texts_.size()) continue;
      throw Error(ErrorCode::invalid_argument,
                  "--eval: " + files[0] + " has " + std::to_string(texts_.size()) + " lines, " +
                      files[i] + " " + std::to_string(references_.back().size()),
                  "all files must have the same number of lines");
    }
  }

  void read_text(const std::string& path) {
    std::string& text = texts_.emplace_back();
    for (const std::string& line : lines_of(path)) text += (text.empty() ? "" : "\n") + line;
  }

  // Lines of "text<tab>label".
  void read_labels(const std::string& path) {
    references_.resize(1);
    size_t number = 0;
    for (const std::string& line : lines_of(path)) {
      ++number;
      const size_t tab = line.rfind('\t');
      if (tab == std::string::npos) {
        throw Error(ErrorCode::invalid_argument,
                    path + ":" + std::to_string(number) + ": must contain a tab",
                    "a line is text<tab>label");
      }
      texts_.push_back(line.substr(0, tab));
      references_[0].push_back(line.substr(tab + 1));
    }
  }

  Quality translation(const Model& model) const {
    Translator translator(model, {.threads = threads_});
    std::vector<std::string> hypotheses;
    translator.translate(texts_, {}, [&](size_t, Translation&& translation) {
      hypotheses.push_back(std::move(translation.text));
    });
    return {.value = bleu(hypotheses, as_references(references_)).score,
            .tokens = translator.engine().statistics().new_tokens};
  }

  Quality language(const Model& model) const {
    std::vector<TaskInput> inputs;
    for (const std::string& text : texts_) inputs.push_back({.text = text});
    double sum = 0;
    int64_t tokens = 0;
    for (const Scored& scored : Scorer(model, {.threads = threads_}).score(inputs)) {
      sum += scored.log_probability, tokens += std::ssize(scored.ids);
    }
    return {.value = std::exp(-sum / static_cast<double>(tokens)), .tokens = tokens};
  }

  Quality labels(const Model& model) const {
    const Classifier classifier(model, {.threads = threads_});
    std::vector<TaskInput> inputs;
    for (const std::string& text : texts_) inputs.push_back({.text = text});
    const std::vector<Classified> found = classifier.classify(inputs);
    int64_t right = 0, tokens = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      right += found[i].name == references_[0][i] ? 1 : 0;
      tokens += found[i].tokens;
    }
    return {.value = static_cast<double>(right) / static_cast<double>(found.size()),
            .tokens = tokens};
  }

  int threads_;
  std::string metric_;
  std::vector<std::string> texts_;
  std::vector<std::vector<std::string>> references_;  // [files][texts]; of labels one "file"
};

struct Comparison {
  std::string metric;
  Quality before, after;
};

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
                     "\ntensors     " + bytes_text(report.bytes_before) + " -> " +
                     bytes_text(report.bytes_after) + "\n";
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
  check_out_folder(flags.model, flags.out, flags.force || is_quantized(flags.out));
  ProgressLine progress;
  std::optional<Evaluation> evaluation;
  if (!flags.eval.empty()) evaluation.emplace(Model::load(flags.model), flags);
  // Fail before the slow evaluation if the model cannot be quantized.
  progress.show("quantizing");
  QuantizeOptions options = flags.options;
  options.threads = flags.threads;
  const QuantizeReport report = quantize_model(flags.model, flags.out, options);
  std::optional<Comparison> eval;
  if (evaluation) {
    const auto quality = [&](const std::string& folder) {
      progress.show("evaluating " + folder);
      return evaluation->of(Model::load(folder));
    };
    eval = Comparison{evaluation->metric(), quality(flags.model), quality(flags.out)};
  }
  progress.clear();
  out.write(flags.json ? to_json(report, flags, eval).dump(2) + "\n" : to_text(report, eval));
}

}  // namespace

void add_quantize(Program& program) {
  const Command quantize =
      program.add_verb("quantize", "Quantize a model, and compare: " + weight_type_choices());
  const auto flags = std::make_shared<QuantizeFlags>();
  add_text(quantize, "--model", flags->model, "DIR", "model folder to read");
  add_text(quantize, "--out", flags->out, "DIR", "folder to write");
  add_text(quantize, "--type", flags->options.type, "TYPE", weight_type_choices());
  add_text(quantize, "--keep-wide", flags->options.keep_wide, "REGEX",
           "matrices whose names match stay f16");
  add_switch(quantize, "--force", flags->force, "overwrite the model in --out");
  add_files(quantize, "--eval", flags->eval, "compare quality and speed on these files");
  add_common_flags(quantize, *flags);
  quantize.footer(weight_type_help() + kHelp);
  quantize.on_run([flags](Output& out) { run_quantize(*flags, out); });
}

}  // namespace heed::cli
