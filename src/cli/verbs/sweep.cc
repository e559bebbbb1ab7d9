// heed sweep: trains variations of a recipe and compares them.
#include "heed/sweep.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/program.h"
#include "cli/training_display.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "SWEEP.toml names a recipe and the values that rows change:\n"
    "\n"
    "  recipe = \"recipes/multi30k-en-de.toml\"\n"
    "  columns = [\"bleu\", \"perplexity\"]    # metrics; the chart shows the first\n"
    "  [set]                                # for all rows\n"
    "  train.steps = 2000\n"
    "  [[rows]]                             # one row\n"
    "  name = \"base\"\n"
    "  [[lists]]                            # values in parallel\n"
    "  model.heads = [1, 2]\n"
    "  model.head_dim = [128, 64]\n"
    "  [[grid]]                             # every combination\n"
    "  model.dropout = [0.1, 0.3]\n"
    "  objective.label_smoothing = [0.0, 0.1]\n"
    "\n"
    "Each row is trained into a sub-folder of OUT. OUT also gets table.txt, table.md, table.json "
    "and\n"
    "sweep.html. Run the same command to continue: finished rows are skipped. A row whose "
    "settings\n"
    "have changed (except more steps) is trained from scratch in a new folder.\n"
    "\n"
    "Examples:\n"
    "  heed sweep sweeps/table3-multi30k.toml --dry-run\n"
    "  heed sweep sweeps/table3-multi30k.toml --out runs/table3";

struct SweepFlags : CommonFlags {
  std::string file, out, memory;
  std::vector<std::string> set;
  bool markdown = false, dry_run = false;
  bool has_seed = false;
};

std::string plan_text(const SweepPlan& plan) {
  std::string text;
  for (const SweepRow& row : plan.rows) {
    text += row.name + "\t" + plan.out + "/" + row.folder;
    for (const std::string& set : plan.set) text += "\t" + set;
    for (const auto& [key, value] : row.changes) text += "\t" + key + "=" + value;
    text += "\n";
  }
  return text;
}

std::string plan_json(const SweepPlan& plan) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const SweepRow& row : plan.rows) {
    nlohmann::ordered_json changes = nlohmann::ordered_json::object();
    for (const auto& [key, value] : row.changes) changes[key] = value;
    rows.push_back(
        {{"name", row.name}, {"folder", plan.out + "/" + row.folder}, {"changes", changes}});
  }
  return nlohmann::ordered_json{{"recipe", plan.recipe}, {"set", plan.set}, {"rows", rows}}.dump(
             2) +
         "\n";
}

void run_sweep(const SweepFlags& flags, Output& out) {
  if (flags.file.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed sweep: SWEEP is missing",
                "heed sweep SWEEP.toml [--set key=value]… [--out DIR]");
  }
  if (one_of_several()) {
    throw Error(ErrorCode::invalid_argument, "heed sweep must not be started by mpirun",
                "run it without mpirun; heed train supports mpirun for a single run");
  }
  SweepOptions options;
  options.file = flags.file;
  options.set = flags.set;
  if (flags.has_seed) {
    options.set.push_back("train.seed=" + std::to_string(flags.seed));
  }
  options.out = flags.out;
  options.threads = flags.threads;
  if (!flags.memory.empty()) options.memory_bytes = parse_bytes(flags.memory);
  if (flags.dry_run) {
    const SweepPlan plan = plan_sweep(options);
    out.write(flags.json ? plan_json(plan) : plan_text(plan));
    return;
  }
  TrainingDisplay display;
  const StopOnInterrupt interrupt;
  options.stop = &StopOnInterrupt::requested();
  options.validator = decoding_validator();
  options.progress = [&](const TrainProgress& p) { display.step(p); };
  options.note = [&](std::string_view text) { display.note(text); };
  options.row_begins = [&](size_t row, const SweepPlan& plan) {
    display.note("row " + std::to_string(row + 1) + " of " + std::to_string(plan.rows.size()) +
                 ": " + plan.rows[row].name);
  };
  const SweepResult result = sweep(options);
  out.write(sweep_table(result, flags.json       ? TableFormat::json
                                : flags.markdown ? TableFormat::markdown
                                                 : TableFormat::text));
  if (!result.finished()) display.note("stopped: run the same command to resume");
  if (result.failures() > 0) {
    throw Error(ErrorCode::invalid_argument,
                std::to_string(result.failures()) + " of " + std::to_string(result.rows.size()) +
                    " rows failed; see " + result.plan.out + "/table.json",
                "remove or change them; the other rows are finished and kept");
  }
}

}  // namespace

void add_sweep(Program& program) {
  const Command sweep = program.add_verb("sweep", "Train variations of a recipe and compare them");
  const auto flags = std::make_shared<SweepFlags>();
  add_argument(sweep, "SWEEP", flags->file, "TOML file; see sweeps/");
  add_texts(sweep, "--set", flags->set, "KEY=VALUE",
            "override a recipe value in all rows: train.steps=9");
  add_text(sweep, "--out", flags->out, "DIR", "output folder");
  add_text(sweep, "--memory", flags->memory, "SIZE", "memory limit, such as 4GB");
  add_switch(sweep, "--markdown", flags->markdown, "print the table as Markdown");
  add_switch(sweep, "--dry-run", flags->dry_run, "check and print all rows without training");
  add_common_flags(sweep, *flags);
  sweep.footer(kHelp);
  sweep.on_run([flags, sweep](Output& out) {
    flags->has_seed = sweep.given("--seed");
    run_sweep(*flags, out);
  });
}

}  // namespace heed::cli
