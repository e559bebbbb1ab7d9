// What include/heed/sweep.h declares: plans the rows and trains them in turn.
#include "heed/sweep.h"

#include <algorithm>
#include <filesystem>

#include "base/text/suggest.h"
#include "heed/error.h"
#include "train/recipe/preparation.h"
#include "train/recipe/recipe.h"
#include "train/recipe/recipe_checks.h"
#include "train/sweep/sweep_file.h"
#include "train/sweep/sweep_folders.h"

namespace heed {
namespace {

void check_columns(const std::vector<std::string>& columns,
                   const std::vector<std::string>& metrics) {
  for (const std::string& column : columns) {
    if (std::ranges::find(metrics, column) != metrics.end()) continue;
    std::string names;
    for (const std::string& metric : metrics) names += (names.empty() ? "" : ", ") + metric;
    const auto near = nearest(column, metrics);
    throw Error(ErrorCode::invalid_argument, "columns must be of " + names + ", got '" + column +
                                                 "'" +
                                                 (near ? " (did you mean " + *near + "?)" : ""));
  }
}

class SweepRun {
 public:
  explicit SweepRun(const SweepOptions& options) : options_(options) {
    result_.plan = plan_sweep(options);
    for (const SweepRow& row : result_.plan.rows) {
      SweepRowResult& r = result_.rows.emplace_back();
      r.row = row;
      if (auto finished = finished_result(result_.plan, row)) {
        r.status = RowStatus::finished;
        r.result = std::move(*finished);
      }
    }
  }

  SweepResult run() {
    make_folder(result_.plan.out);
    for (size_t i = 0; i < result_.rows.size() && !stops(); ++i) {
      if (result_.rows[i].status != RowStatus::finished) run_row(i);
      write_tables();
    }
    return std::move(result_);
  }

 private:
  bool stops() const { return options_.stop && options_.stop->load(); }

  void run_row(size_t i) {
    const SweepPlan& plan = result_.plan;
    SweepRowResult& r = result_.rows[i];
    if (options_.row_begins) options_.row_begins(i, plan);
    TrainOptions options = train_options(plan, r.row);
    options.memory_bytes = options_.memory_bytes;
    options.threads = options_.threads;
    options.progress = options_.progress;
    options.note = options_.note;
    options.stop = options_.stop;
    options.validator = options_.validator;
    try {
      make_folder(options.out);
      write_settings(plan, r.row);
      r.result = train(options);
    } catch (const Error& error) {
      // A row that fails does not end the sweep; an internal error does.
      if (error.code() == ErrorCode::internal) throw;
      r.status = RowStatus::failed;
      r.error = error.what();
      if (options_.note) options_.note("row " + r.row.name + " failed: " + r.error);
      return;
    }
    r.status = r.result.finished ? RowStatus::finished : RowStatus::stopped;
    if (!r.result.finished) return;
    write_result(plan, r.row, r.result);
  }

  void write_tables() const {
    const std::string& out = result_.plan.out;
    write_whole(out + "/table.txt", sweep_table(result_, TableFormat::text));
    write_whole(out + "/table.md", sweep_table(result_, TableFormat::markdown));
    write_whole(out + "/table.json", sweep_table(result_, TableFormat::json));
    write_whole(out + "/sweep.html", sweep_html(result_));
  }

  const SweepOptions& options_;
  SweepResult result_;
};

}  // namespace

SweepPlan plan_sweep(const SweepOptions& options) {
  SweepPlan plan = read_sweep_file(options.file);
  plan.set.insert(plan.set.end(), options.set.begin(), options.set.end());
  if (!options.out.empty()) plan.out = options.out;
  if (plan.out.empty()) plan.out = "runs/" + std::filesystem::path(options.file).stem().string();
  std::vector<RecipeProblem> problems;
  for (const SweepRow& row : plan.rows) {
    try {
      const Recipe recipe = read_recipe(plan.recipe, sets_of(plan, row));
      check(recipe_model_config(recipe), "[model]");
      if (plan.columns.empty()) plan.columns = {recipe.validate.metric};
      check_columns(plan.columns, metrics_of(recipe.objective.options.kind));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal || error.code() == ErrorCode::not_found) throw;
      // What is wrong with the recipe is wrong in every row: say it once.
      const auto same = [&](const RecipeProblem& p) { return p.text.ends_with(error.what()); };
      if (std::ranges::any_of(problems, same)) continue;
      problems.push_back({"row " + row.name + ": " + error.what(), error.hint()});
    }
  }
  if (!problems.empty()) throw_problems(options.file, problems);
  choose_folders(plan);
  return plan;
}

const char* name(RowStatus status) {
  switch (status) {
    case RowStatus::waiting:
      return "waiting";
    case RowStatus::stopped:
      return "stopped";
    case RowStatus::finished:
      return "finished";
    case RowStatus::failed:
      return "failed";
  }
  return "";
}

bool SweepResult::finished() const {
  return std::ranges::all_of(rows, [](const SweepRowResult& r) {
    return r.status == RowStatus::finished || r.status == RowStatus::failed;
  });
}

size_t SweepResult::failures() const {
  return static_cast<size_t>(std::ranges::count(rows, RowStatus::failed, &SweepRowResult::status));
}

SweepResult sweep(const SweepOptions& options) { return SweepRun(options).run(); }

}  // namespace heed
