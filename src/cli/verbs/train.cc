// heed train: trains a model from a recipe.
#include "heed/train.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/program.h"
#include "cli/table.h"
#include "cli/training_display.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "OUT/ gets config.json, model.safetensors and the tokenizer, and also checkpoints/,\n"
    "log.jsonl, TensorBoard events and report.html. Run the same command to resume after an\n"
    "interruption: the result is bit-identical to an uninterrupted run. Ctrl-C saves a checkpoint\n"
    "first; a second Ctrl-C exits at once.\n"
    "\n"
    "mpirun -n 4 heed train … runs data-parallel in four processes.\n"
    "\n"
    "Examples:\n"
    "  heed train recipes/shakespeare-char.toml --out runs/shakespeare\n"
    "  heed train recipes/multi30k-en-de.toml --set train.steps=100 --memory 2GB\n"
    "  heed train recipes/multi30k-en-de.toml --print-config";

struct TrainFlags : CommonFlags {
  std::string recipe, out, memory;
  std::vector<std::string> set;
  bool print_config = false;
  bool mpi = false;
  bool has_seed = false;
};

std::string config_text(const std::vector<TrainSetting>& settings) {
  std::string text, section;
  for (const TrainSetting& s : settings) {
    if (s.section != section) {
      text += (section.empty() ? "[" : "\n[") + s.section + "]\n";
      section = s.section;
    }
    std::string line = s.key + " = " + s.value;
    constexpr size_t kCommentColumn = 44;
    if (line.size() < kCommentColumn) line.append(kCommentColumn - line.size(), ' ');
    text += line + "  # " + s.origin + ": " + s.help;
    for (size_t i = 0; i < s.values.size(); ++i) {
      text += (i == 0 ? ": " : i + 1 == s.values.size() ? " or " : ", ") + s.values[i];
    }
    text += "\n";
  }
  return text;
}

std::string config_json(const std::vector<TrainSetting>& settings) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const TrainSetting& s : settings) {
    auto& entry = document[s.section][s.key];
    entry = {{"value", s.value}, {"origin", s.origin}, {"help", s.help}};
    if (!s.values.empty()) entry["values"] = s.values;
  }
  return document.dump(2) + "\n";
}

std::string to_text(const TrainResult& r) {
  if (r.was_finished) {
    const std::string done =
        r.folder + ": finished already, after " + std::to_string(r.steps) + " steps";
    if (r.changed_settings.empty()) {
      return done + "; raise train.steps (or train.epochs) to continue, or use another --out\n";
    }
    std::string text = done + ", with other settings:\n";
    for (const std::string& change : r.changed_settings) text += "  " + change + "\n";
    return text +
           "nothing was trained: use another --out to train with the new settings, or raise "
           "train.steps (or train.epochs) to continue this training with them\n";
  }
  std::string text = r.folder + ": " + std::to_string(r.steps) + " steps in " +
                     duration(r.seconds) + ", " +
                     fixed(r.seconds > 0 ? static_cast<double>(r.tokens) / r.seconds : 0, 0) +
                     " tokens/s, memory " + fixed(static_cast<double>(r.peak_rss_bytes) / 1e6, 0) +
                     " MB (planned " + fixed(static_cast<double>(r.planned_bytes) / 1e6, 0) +
                     " MB, excluding the process itself)\n";
  for (const auto& [name, value] : r.validation) {
    text += "validation " + name + " " + fixed(value, 4) + "\n";
  }
  return text + (r.finished ? "finished\n" : "stopped: run the same command to resume\n");
}

std::string to_json(const TrainResult& r) {
  nlohmann::ordered_json document = {{"folder", r.folder},
                                     {"steps", r.steps},
                                     {"finished", r.finished},
                                     {"seconds", r.seconds},
                                     {"tokens", r.tokens},
                                     {"loss", r.loss},
                                     {"ranks", r.ranks},
                                     {"validation", r.validation},
                                     {"planned_bytes", r.planned_bytes},
                                     {"peak_rss_bytes", r.peak_rss_bytes}};
  if (r.best_metric) document["best_metric"] = *r.best_metric;
  if (r.best_metric) document["best_step"] = r.best_step;
  if (r.was_finished) document["changed_settings"] = r.changed_settings;
  return document.dump(2) + "\n";
}

void run_train(const TrainFlags& flags, Output& out) {
  if (flags.recipe.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed train: RECIPE is missing",
                "heed train RECIPE.toml [--set key=value]… [--out DIR]");
  }
  TrainOptions options;
  options.recipe = flags.recipe;
  options.set = flags.set;
  options.out = flags.out;
  options.threads = flags.threads;
  if (flags.has_seed) options.seed = flags.seed;
  if (!flags.memory.empty()) options.memory_bytes = parse_bytes(flags.memory);
  if (flags.print_config) {
    const std::vector<TrainSetting> settings = train_settings(options);
    out.write(flags.json ? config_json(settings) : config_text(settings));
    return;
  }
  TrainingDisplay display;
  const StopOnInterrupt interrupt;
  options.stop = &StopOnInterrupt::requested();
  options.progress = [&](const TrainProgress& p) { display.step(p); };
  options.note = [&](std::string_view text) { display.note(text); };
  options.mpi = flags.mpi || one_of_several();
  options.validator = decoding_validator();
  const TrainResult result = train(options);
  if (result.rank > 0) return;  // only rank 0 prints
  out.write(flags.json ? to_json(result) : to_text(result));
}

}  // namespace

void add_train(Program& program) {
  const Command train = program.add_verb("train", "Train a model from a recipe");
  const auto flags = std::make_shared<TrainFlags>();
  add_argument(train, "RECIPE", flags->recipe, "TOML file; see recipes/");
  add_texts(train, "--set", flags->set, "KEY=VALUE", "override a recipe value: train.steps=9");
  add_text(train, "--out", flags->out, "DIR", "output folder");
  add_text(train, "--memory", flags->memory, "SIZE", "memory limit, such as 4GB");
  add_switch(train, "--print-config", flags->print_config,
             "print all keys with value, origin and meaning, and exit");
  add_switch(train, "--mpi", flags->mpi, "force MPI (processes started by mpirun are detected)");
  add_common_flags(train, *flags);
  train.set_help("--seed", "random seed (default: the recipe's train.seed)");
  train.footer(kHelp);
  train.on_run([flags, train](Output& out) {
    flags->has_seed = train.given("--seed");
    run_train(*flags, out);
  });
}

}  // namespace heed::cli
