// Splits lines into columns: tab-separated, comma-separated (RFC 4180), JSON objects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/options.h"

namespace heed {

// The columns of a line between tabs, or between any run of spaces and tabs.
void split_tabs(std::string_view line, std::vector<std::string>& columns);
void split_spaces(std::string_view line, std::vector<std::string>& columns);

// The columns of a CSV record. False when a quoted column is not closed: the record continues in the
// next line. A quote inside an unquoted column is literal.
bool split_csv(std::string_view line, std::vector<std::string>& columns);

// The columns of a table that form an example.
struct TableColumns {
  size_t first = 0;
  std::optional<size_t> second, label;
  bool has_header = false;  // the first line has the names

  size_t needed() const;  // how many columns a line must have
};

// By number, or by name given the header. Throws invalid_argument for a number below 1, a name that is
// not in the header, and names mixed with numbers.
TableColumns choose_columns(const CorpusOptions& corpus, Objective objective,
                            const std::optional<std::vector<std::string>>& header);
// Whether the options name columns, so that the first line must be a header.
bool names_columns(const CorpusOptions& corpus);

// Reads one JSON object per line.
class JsonColumns {
 public:
  JsonColumns(const CorpusOptions& corpus, Objective objective);

  struct Values {
    std::string first, second, label;
    std::vector<std::string> words, tags;
  };
  // False when the line is not JSON or lacks a field. A dotted name is a path: "translation.de".
  // Numbers are returned as written in JSON.
  bool read(std::string_view line, Values& values) const;
  bool has_second() const { return !second_.empty(); }

 private:
  Objective objective_;
  std::string first_, second_, label_;
};

}  // namespace heed
