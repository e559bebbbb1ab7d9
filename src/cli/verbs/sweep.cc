// heed sweep: variations of a recipe, in one table and one chart.
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
    "SWEEP.toml names a recipe and what rows change in it:\n"
    "\n"
    "  recipe = \"recipes/multi30k-en-de.toml\"\n"
    "  columns = [\"bleu\", \"perplexity\"]    # metrics; the chart shows the first\n"
    "  [set]                                # for all rows\n"
    "  train.steps = 2000\n"
    "  [[rows]]                             # one row\n"
    "  name = \"base\"\n"
    "  [[lists]]                            # values that belong together\n"
    "  model.heads = [1, 2]\n"
    "  model.head_dim = [128, 64]\n"
    "  [[grid]]                             # every combination\n"
    "  model.dropout = [0.1, 0.3]\n"
    "  objective.label_smoothing = [0.0, 0.1]\n"
    "\n"
    "Each row is trained into a folder of its own in OUT, which also gets table.txt, table.md,\n"
    "table.json and sweep.html. Run the same again to go on: finished rows are not run again.\n"
    "A row whose settings have changed, other than to more steps, is trained anew, elsewhere.\n"
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
    throw Error(ErrorCode::invalid_argument, "heed sweep: the sweep is missing",
                "heed sweep SWEEP.toml [--set key=value]… [--out DIR]");
  }
  if (one_of_several()) {
    throw Error(ErrorCode::invalid_argument,
                "heed sweep is one process, and mpirun has started several",
                "run it without mpirun; mpirun … heed train … trains one row by several processes");
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
  if (!result.finished()) display.note("stopped: run the same again to go on");
  if (result.failures() > 0) {
    throw Error(ErrorCode::invalid_argument,
                std::to_string(result.failures()) + " of " + std::to_string(result.rows.size()) +
                    " rows failed; " + result.plan.out + "/table.json says why",
                "leave them out or change them; the others are finished and stay");
  }
}

}  // namespace

void add_sweep(Program& program) {
  const Command sweep = program.add_verb("sweep", "Train variations of a recipe, and compare");
  const auto flags = std::make_shared<SweepFlags>();
  add_argument(sweep, "SWEEP", flags->file, "a TOML file; sweeps/ has one");
  add_texts(sweep, "--set", flags->set, "KEY=VALUE", "change a value of all rows: train.steps=9");
  add_text(sweep, "--out", flags->out, "DIR", "the folder to write");
  add_text(sweep, "--memory", flags->memory, "SIZE", "the most memory to use, such as 4GB");
  add_switch(sweep, "--markdown", flags->markdown, "print the table as Markdown");
  add_switch(sweep, "--dry-run", flags->dry_run, "check every row, print them, and stop");
  add_common_flags(sweep, *flags);
  sweep.footer(kHelp);
  sweep.on_run([flags, sweep](Output& out) {
    flags->has_seed = sweep.given("--seed");
    run_sweep(*flags, out);
  });
}

}  // namespace heed::cli
