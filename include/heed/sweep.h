// A sweep: variations of one recipe, trained in turn, with one table and one chart.
//
//   heed::SweepResult result = heed::sweep({.file = "sweeps/table3.toml", .out = "runs/table3"});
//   std::string table = heed::sweep_table(result, heed::TableFormat::markdown);
//
// A sweep is TOML:
//
//   recipe = "recipes/multi30k-en-de.toml"
//   columns = ["perplexity", "bleu"]         # metrics of the table; the chart shows the first
//
//   [set]                                    # for all rows, over the recipe
//   train.steps = 2000
//
//   [[rows]]                                 # one row, with a name
//   name = "base"
//
//   [[lists]]                                # one row per index of the lists
//   model.heads = [1, 2, 8]
//   model.head_dim = [128, 64, 16]
//
//   [[grid]]                                 # one row per combination
//   model.dropout = [0.1, 0.3]
//   objective.label_smoothing = [0.0, 0.1]
//
// Every row is a training in its own folder under OUT. Finished rows are not run again, so the same
// sweep resumes where it stopped. A row whose settings changed, other than to more steps, is trained
// from the start in a folder with a hash of them in its name. After each row table.txt, table.md,
// table.json and sweep.html are written to OUT.
//
// All functions throw heed::Error. Errors in the recipe of any row are reported before the first row
// runs; a row that fails later is marked in the table, and the others still run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/train.h"

namespace heed {

struct SweepRow {
  std::string name;
  std::string folder;  // under OUT
  // Overrides of the recipe and [set]: "model.heads", "8".
  std::vector<std::pair<std::string, std::string>> changes{};
};

struct SweepPlan {
  std::string recipe, out;
  std::vector<std::string> columns{};  // metrics
  std::vector<std::string> set{};      // for all rows: "section.key=value"
  std::vector<SweepRow> rows{};
};

struct SweepOptions {
  std::string file;                // a TOML file
  std::vector<std::string> set{};  // overrides the file's, for all rows
  std::string out{};               // overrides the file's
  int64_t memory_bytes = 0;        // as in TrainOptions
  int threads = 0;
  std::function<void(size_t row, const SweepPlan& plan)> row_begins{};
  std::function<void(const TrainProgress&)> progress{};
  std::function<void(std::string_view)> note{};
  const std::atomic<bool>* stop = nullptr;
  Validator validator{};
};

// Reads the file and checks the recipe of every row.
SweepPlan plan_sweep(const SweepOptions& options);

enum class RowStatus { waiting, stopped, finished, failed };
const char* name(RowStatus status);

struct SweepRowResult {
  SweepRow row;
  RowStatus status = RowStatus::waiting;
  std::string error{};   // of a failed row
  TrainResult result{};  // of a finished row
};

struct SweepResult {
  SweepPlan plan;
  std::vector<SweepRowResult> rows;
  bool finished() const;  // all rows finished or failed
  size_t failures() const;
};

SweepResult sweep(const SweepOptions& options);

enum class TableFormat { text, markdown, json };
// One line per row: its name, the keys that rows change, parameters, steps, the columns and the
// speed. A cell is empty if the row does not change the key, as in the paper's Table 3.
std::string sweep_table(const SweepResult& result, TableFormat format);
// A self-contained page with the table and a chart of the first column.
std::string sweep_html(const SweepResult& result);

}  // namespace heed
