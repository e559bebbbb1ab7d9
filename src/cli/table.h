// A plain-text table with aligned columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text/number_text.h"

namespace heed::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add_row(std::vector<std::string> cells);  // one cell per column

  // The titles, then the rows; each line without trailing spaces.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "4.5 MB", "22.6 kB" and "63.1 M", "22.6 k": sizes of models, small ones too.
std::string bytes_text(int64_t bytes);
std::string count_text(double count);

}  // namespace heed::cli
