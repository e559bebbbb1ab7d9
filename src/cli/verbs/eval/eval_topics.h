// The parts of heed eval: what to measure, in the files that measure alike things.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "cli/program.h"

namespace heed::cli {

void add_eval_translation(Command eval);  // bleu, chrf, ter
void add_eval_labels(Command eval);       // accuracy, f1, matthews, correlations
void add_eval_structures(Command eval);   // spans, brackets, perplexity

// What most topics take: the file to judge, and the truth.
struct EvalFlags : CommonFlags {
  std::string input = "-";
};

// Reads a file and refuses an empty one.
std::vector<std::string> read_some_lines(const std::string& path);
// "out.txt has 3 lines, ref.txt has 4" as an error, unless both have as many.
void check_line_counts(const std::string& first_path, size_t first_lines,
                       const std::string& second_path, size_t second_lines);

// "standard input" for "-".
std::string shown_path(const std::string& path);

// All of `text` as a number; anything else throws, naming the place.
double parse_number(std::string_view text, const std::string& where);

}  // namespace heed::cli
