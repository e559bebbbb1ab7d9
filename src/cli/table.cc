#include "cli/table.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace heed::cli {
namespace {

constexpr size_t kGap = 2;  // spaces between two columns

void append_cell(std::string& line, const std::string& cell, size_t width, Align align) {
  const std::string padding(width - cell.size(), ' ');
  line += align == Align::left ? cell + padding : padding + cell;
}

void trim_end(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) throw std::logic_error("a table row needs a cell a column");
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);

  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = titles[c].size();
    for (const auto& row : rows_) width = std::max(width, row[c].size());
    widths.push_back(width);
  }

  std::string text;
  const auto append_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line.append(kGap, ' ');
      append_cell(line, cells[c], widths[c], columns_[c].align);
    }
    trim_end(line);
    text += line + '\n';
  };
  append_line(titles);
  for (const auto& row : rows_) append_line(row);
  return text;
}

std::string bytes_text(int64_t bytes) { return count_text(static_cast<double>(bytes)) + "B"; }

std::string count_text(double count) {
  return count < 1e6 ? fixed(count / 1e3, 1) + " k" : fixed(count / 1e6, 1) + " M";
}

}  // namespace heed::cli
