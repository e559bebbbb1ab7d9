#include "cli/line_verb.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/files/text_file.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

// Lines per group: enough to fill batches, few enough for steady output.
constexpr size_t kGroupLines = 512;
constexpr size_t kGroupBytes = 1 << 20;
constexpr size_t kReportedLines = 5;

std::string progress_text(int64_t lines, const LineReader& reader) {
  std::string text = std::to_string(lines) + " lines";
  if (reader.file_bytes() <= 0) return text;
  const double share =
      static_cast<double>(reader.bytes_read()) / static_cast<double>(reader.file_bytes());
  return text + ", " + fixed(100 * share, 0) + " % of " + reader.path();
}

}  // namespace

void add_line_flags(Command command, LineFlags& flags) {
  add_text(command, "--model", flags.model, "DIR", "model folder");
  add_arguments(command, "FILE", flags.files,
                "text, one input per line; none or -: standard input");
  add_number(command, "--batch-tokens", flags.batch_tokens, {.min = 1, .max = 1 << 24},
             "maximum number of tokens per batch");
  add_number(command, "--max-tokens", flags.max_tokens, {.min = 0, .max = 1 << 24},
             "truncate inputs to N tokens; 0: the model's maximum");
  add_common_flags(command, flags);
  command.set_help("--json", "print one JSON object per line");
}

Model load_model(const std::string& folder, const std::string& example, bool takes_text) {
  if (folder.empty()) throw Error(ErrorCode::invalid_argument, "--model is missing", example);
  Model model = Model::load(folder);
  if (takes_text) model.tokenizer();  // throws if there is none
  return model;
}

void each_lines(const LineFlags& flags, const std::function<void(const Lines& lines)>& visit) {
  ProgressLine progress;
  Lines lines;
  size_t bytes = 0;
  const auto answer = [&](const LineReader& reader) {
    if (lines.texts.empty()) return;
    progress.clear();
    visit(lines);
    lines.first += static_cast<int64_t>(lines.texts.size());
    lines.texts.clear();
    bytes = 0;
    progress.show(progress_text(lines.first - 1, reader));
  };
  const std::vector<std::string> files =
      flags.files.empty() ? std::vector<std::string>{"-"} : flags.files;
  for (const std::string& file : files) {
    LineReader reader(file);
    const bool typed = file == "-" && isatty(STDIN_FILENO);
    for (std::string line; reader.next(line);) {
      bytes += line.size();
      lines.texts.push_back(std::move(line));
      if (typed || lines.texts.size() == kGroupLines || bytes > kGroupBytes) answer(reader);
    }
    answer(reader);
  }
}

TaskInput split_pair(const std::string& line, int64_t number) {
  const size_t tab = line.find('\t');
  if (tab == line.npos || line.find('\t', tab + 1) != line.npos) {
    throw Error(ErrorCode::invalid_argument,
                "line " + std::to_string(number) + ": must be two texts separated by a tab, got " +
                    (tab == line.npos ? "no tab" : "more than one tab"),
                "each line is a pair: first<tab>second");
  }
  return {.text = line.substr(0, tab), .second = line.substr(tab + 1)};
}

void CutLines::add(int64_t number, const TaskResult& result) {
  if (!result.truncated) return;
  ++count_;
  tokens_ = std::max(tokens_, result.tokens);
  if (first_.size() < kReportedLines) first_.push_back(number);
}

void CutLines::report() const {
  if (count_ == 0) return;
  std::string numbers;
  for (const int64_t number : first_) {
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(number);
  }
  if (count_ > static_cast<int64_t>(first_.size())) numbers += ", …";
  std::fprintf(stderr, "warning: %lld %s longer than %lld tokens and %s truncated: line %s\n",
               static_cast<long long>(count_), count_ == 1 ? "input was" : "inputs were",
               static_cast<long long>(tokens_), count_ == 1 ? "was" : "were", numbers.c_str());
}

}  // namespace heed::cli
