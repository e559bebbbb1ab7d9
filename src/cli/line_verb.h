// What the verbs share that take lines of text and answer each with a line.
//
//   LineFlags flags;                                     // part of the verb's own
//   add_line_flags(command, flags);
//   each_lines(flags, [&](const Lines& lines) { … });    // some lines at a time, in order
//
// Results come as soon as a group of lines is done, so a file may be of any length.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/number_text.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "heed/tasks.h"

namespace heed::cli {

struct LineFlags : CommonFlags {
  std::string model;
  std::vector<std::string> files;
  int batch_tokens = 4096;
  int max_tokens = 0;

  TaskOptions task_options() const {
    return {.threads = threads, .batch_tokens = batch_tokens, .max_tokens = max_tokens};
  }
};
void add_line_flags(Command command, LineFlags& flags);

// Loads --model; throws with `example` as the hint when it is missing.
Model load_model(const std::string& folder, const std::string& example);

struct Lines {
  int64_t first = 1;  // the number of the first one
  std::vector<std::string> texts;
};
// From a terminal, one at a time. Shows progress.
void each_lines(const LineFlags& flags, const std::function<void(const Lines& lines)>& visit);

// "a<tab>b" as a pair; throws, naming line `number`, when there is not exactly one tab.
TaskInput split_pair(const std::string& line, int64_t number);

// Remembers which lines were longer than the model reads, and says so on standard error at the end.
class CutLines {
 public:
  void add(int64_t number, const TaskResult& result);
  void report() const;

 private:
  std::vector<int64_t> first_;  // the first few
  int64_t count_ = 0, tokens_ = 0;
};

// One JSON document on one line; bytes that are not UTF-8 become U+FFFD.
template <class Json>
std::string json_line(const Json& json) {
  return json_text(json) + "\n";
}

}  // namespace heed::cli
