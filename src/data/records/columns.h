// Lines with columns: tab-separated, comma-separated (RFC 4180), JSON objects.
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

// The columns of a CSV record. False when a quoted column is still open at the end: the record goes
// on in the next line. A quote in the middle of a column that did not begin with one is a
// character.
bool split_csv(std::string_view line, std::vector<std::string>& columns);

// Which columns of a table an example is made of.
struct TableColumns {
  size_t first = 0;
  std::optional<size_t> second, label;
  bool has_header = false;  // the first line has the names

  size_t needed() const;  // how many columns a line must have
};

// From numbers, or from names once the header is known. Throws invalid_argument for a number below
// 1, a name that the header lacks (with what it has), and names mixed with numbers.
TableColumns choose_columns(const CorpusOptions& corpus, Objective objective,
                            const std::optional<std::vector<std::string>>& header);
// Whether the options name columns, so that the first line must be a header.
bool names_columns(const CorpusOptions& corpus);

// Reads one JSON object a line.
class JsonColumns {
 public:
  JsonColumns(const CorpusOptions& corpus, Objective objective);

  struct Values {
    std::string first, second, label;
    std::vector<std::string> words, tags;
  };
  // False when the line is not JSON or lacks a field. A name with dots looks into objects:
  // "translation.de". Numbers are given as JSON writes them.
  bool read(std::string_view line, Values& values) const;
  bool has_second() const { return !second_.empty(); }

 private:
  Objective objective_;
  std::string first_, second_, label_;
};

}  // namespace heed
