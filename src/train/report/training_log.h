// What a training has said so far: OUT/log.jsonl, one JSON object a line, and TensorBoard's events.
//
//   TrainingLog log("run", /*resumed_step=*/0);
//   log.add({.kind = "train", .step = 50, .values = {{"loss", 5.1}}});
//
// The file is only ever appended to. When a training was killed and goes on, steps after its last
// checkpoint come again, with the same numbers; history() has each once.
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
// Nothing when the line is not one of ours: a killed process may leave half a line.
std::optional<LogRecord> record_from_line(const std::string& line);

// What a folder's log has up to a step; of a line that came again, the last.
std::vector<LogRecord> read_history(const std::string& folder, int64_t last_step);

class TrainingLog {
 public:
  // Goes on after what is there up to `resumed_step`. Throws invalid_argument when it cannot be
  // written.
  TrainingLog(const std::string& folder, int64_t resumed_step);

  void add(const LogRecord& record);
  const std::vector<LogRecord>& history() const { return history_; }

 private:
  std::string path_;
  std::vector<LogRecord> history_;
  EventFile events_;
};

}  // namespace heed
