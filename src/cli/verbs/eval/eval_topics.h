// The topics of heed eval, by file.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "cli/program.h"

namespace heed::cli {

void add_eval_translation(Command eval);  // bleu, chrf, ter
void add_eval_labels(Command eval);       // accuracy, f1, matthews, correlations
void add_eval_structures(Command eval);   // spans, brackets, perplexity

// Flags of most topics: the file to evaluate and the references.
struct EvalFlags : CommonFlags {
  std::string input = "-";
};

// Reads a file; throws if it is empty.
std::vector<std::string> read_some_lines(const std::string& path);
// Throws unless both files have the same number of lines.
void check_line_counts(const std::string& first_path, size_t first_lines,
                       const std::string& second_path, size_t second_lines);

// "standard input" for "-".
std::string shown_path(const std::string& path);

// Parses all of `text` as a number; errors name `where`.
double parse_number(std::string_view text, const std::string& where);

}  // namespace heed::cli
