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

// The start of a text for messages, without control characters: a terminal would obey them.
std::string excerpt(std::string_view text);

// How a CSV record ends.
enum class CsvEnd {
  complete,
  open_quote,  // a quoted column is not closed: the record continues in the next line
  stray_text,  // text follows a closing quote: a quote in the column was not doubled
};

// The columns of a CSV record. A quote inside an unquoted column is literal.
CsvEnd split_csv(std::string_view line, std::vector<std::string>& columns);

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
  // Returns why the line is malformed, or an empty text. A dotted name is a path: "translation.de".
  // Numbers are returned as written in JSON.
  std::string read(std::string_view line, Values& values) const;
  bool has_second() const { return !second_.empty(); }

 private:
  Objective objective_;
  std::string first_, second_, label_;
};

}  // namespace heed
