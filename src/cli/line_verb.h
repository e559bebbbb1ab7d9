// Shared by verbs that process text line by line.
//
//   LineFlags flags;                                     // base of the verb's flags
//   add_line_flags(command, flags);
//   each_lines(flags, [&](const Lines& lines) { … });    // groups of lines, in order
//
// Results are written after each group of lines, so files may be of any length.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/text/json_text.h"
#include "base/text/number_text.h"
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

// Loads --model; if it is missing, throws with `example` as the hint. A model without tokenizer is
// refused before any input is read, unless the caller checks that later.
Model load_model(const std::string& folder, const std::string& example, bool takes_text = true);

struct Lines {
  int64_t first = 1;  // line number of texts[0]
  std::vector<std::string> texts;
};
// Shows progress. From a terminal, one line at a time.
void each_lines(const LineFlags& flags, const std::function<void(const Lines& lines)>& visit);

// Splits "a<tab>b"; throws with the line number unless there is exactly one tab.
TaskInput split_pair(const std::string& line, int64_t number);

// Collects the numbers of truncated lines for a warning at the end.
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
