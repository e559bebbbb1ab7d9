// heed eval: metrics of translations, classifications, tags, trees and language models.
#include <charconv>

#include "cli/verbs/eval/eval_topics.h"
#include "heed/error.h"
#include "heed/metrics.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "Examples:\n"
    "  heed eval bleu --ref test.de out.de\n"
    "  heed translate --model DIR test.en | heed eval bleu --ref test.de --json\n"
    "  heed eval chrf --word-order 2 --ref test.de out.de\n"
    "  heed eval f1 --ref gold.txt predicted.txt\n"
    "  heed eval brackets --ref dev.gld --params COLLINS.prm dev.tst";

}  // namespace

std::string shown_path(const std::string& path) { return path == "-" ? "standard input" : path; }

std::vector<std::string> read_some_lines(const std::string& path) {
  std::vector<std::string> lines = read_lines(path);
  if (lines.empty()) {
    throw Error(ErrorCode::invalid_argument, shown_path(path) + " is empty",
                "each line is one item to compare");
  }
  return lines;
}

void check_line_counts(const std::string& first_path, size_t first_lines,
                       const std::string& second_path, size_t second_lines) {
  if (first_lines == second_lines) return;
  throw Error(ErrorCode::invalid_argument,
              "files must have the same number of lines: " + shown_path(first_path) + " has " +
                  std::to_string(first_lines) + ", " + shown_path(second_path) + " has " +
                  std::to_string(second_lines),
              "line N of both files is the same item");
}

double parse_number(std::string_view text, const std::string& where) {
  double value = 0;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end.ec == std::errc() && end.ptr == digits.data() + digits.size()) return value;
  throw Error(ErrorCode::invalid_argument,
              where + ": must be a number, got '" + std::string(text) + "'");
}

void add_eval(Program& program) {
  const Command eval = program.add_verb("eval", "Compute metrics against references");
  add_eval_translation(eval);
  add_eval_labels(eval);
  add_eval_structures(eval);
  eval.footer(kHelp);
}

}  // namespace heed::cli
