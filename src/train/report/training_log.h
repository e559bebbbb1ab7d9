// The log of a training: OUT/log.jsonl, one JSON object per line, and TensorBoard's event files in
// OUT/events, a new one for each start.
//
//   TrainingLog log("run", /*resumed_step=*/0);
//   log.add({.kind = "train", .step = 50, .values = {{"loss", 5.1}}});
//
// The file is append-only. If a killed training resumes, the steps after its last checkpoint are
// logged a second time, with the same numbers; history() has each once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/report/event_file.h"

namespace heed {

struct LogRecord {
  std::string kind;  // start, train, validate, checkpoint, end
  int64_t step = 0;
  std::vector<std::pair<std::string, double>> values{};
  std::vector<std::string> samples{};
  std::string text{};

  std::optional<double> value(std::string_view name) const;
};

std::string to_json_line(const LogRecord& record);
// Nothing if the line is not a record: a killed process may leave half a line.
std::optional<LogRecord> record_from_line(const std::string& line);

// The log of a folder up to a step; of repeated records, the last.
std::vector<LogRecord> read_history(const std::string& folder, int64_t last_step);

class TrainingLog {
 public:
  // Continues after the records up to `resumed_step`. Event files that an earlier version wrote to OUT
  // itself are moved to OUT/events: TensorBoard takes each folder as a run of its own. Throws
  // invalid_argument if the file cannot be written.
  TrainingLog(const std::string& folder, int64_t resumed_step);

  void add(const LogRecord& record);
  const std::vector<LogRecord>& history() const { return history_; }

 private:
  std::string path_;
  std::vector<LogRecord> history_;
  EventFile events_;
};

}  // namespace heed
