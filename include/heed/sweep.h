// A sweep: variations of one recipe, trained one after the other, in one table and one chart.
//
//   heed::SweepResult result = heed::sweep({.file = "sweeps/table3.toml", .out = "runs/table3"});
//   std::string table = heed::sweep_table(result, heed::TableFormat::markdown);
//
// A sweep is TOML:
//
//   recipe = "recipes/multi30k-en-de.toml"
//   columns = ["perplexity", "bleu"]         # of the table; the first is what the chart shows
//
//   [set]                                    # for all rows, over the recipe
//   train.steps = 2000
//
//   [[rows]]                                 # one row, with a name
//   name = "base"
//
//   [[lists]]                                # a row for each place of the lists
//   model.heads = [1, 2, 8]
//   model.head_dim = [128, 64, 16]
//
//   [[grid]]                                 # a row for each combination
//   model.dropout = [0.1, 0.3]
//   objective.label_smoothing = [0.0, 0.1]
//
// Every row is a training in a folder of its own under OUT. Rows that are finished are not run
// again: run the same sweep again to go on. A row whose settings were changed since, other than to
// more steps, is trained anew, in a folder that has a hash of them in its name. After each row OUT
// gets table.txt, table.md, table.json and sweep.html.
//
// All functions throw heed::Error. What is wrong with any row's recipe is said before the first row
// is run; a row that fails later is marked in the table, and the others still run.
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
  // What this row says over the recipe and [set]: "model.heads", "8".
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
  std::vector<std::string> set{};  // over the file's own, for all rows
  std::string out{};               // over the file's own
  int64_t memory_bytes = 0;        // as TrainOptions has them
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
  std::string error{};   // of a failed one
  TrainResult result{};  // of a finished one
};

struct SweepResult {
  SweepPlan plan;
  std::vector<SweepRowResult> rows;
  bool finished() const;  // all of them, well or badly
  size_t failures() const;
};

SweepResult sweep(const SweepOptions& options);

enum class TableFormat { text, markdown, json };
// A row for each row: its name, the keys that rows differ in, parameters, steps, the columns and
// the speed. A cell is empty where a row is as the recipe says, as in the paper's Table 3.
std::string sweep_table(const SweepResult& result, TableFormat format);
// A page by itself, with the table and a chart of the first column.
std::string sweep_html(const SweepResult& result);

}  // namespace heed
