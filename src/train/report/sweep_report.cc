// Tables and the HTML page of a sweep.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text/json_text.h"
#include "base/text/number_text.h"
#include "heed/sweep.h"
#include "model/hugging_face/json_values.h"
#include "train/report/report.h"
#include "train/run/evaluate.h"
#include "train/sweep/sweep_text.h"

namespace heed {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The keys that rows change, in order of first occurrence.
std::vector<std::string> changed_keys(const SweepPlan& plan) {
  std::vector<std::string> keys;
  for (const SweepRow& row : plan.rows) {
    for (const auto& [key, value] : row.changes) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

// A key without its section, if that is unambiguous.
std::string short_key(const std::string& key, const std::vector<std::string>& keys) {
  const auto last = [](const std::string& k) { return k.substr(k.find('.') + 1); };
  const auto same =
      std::ranges::count_if(keys, [&](const auto& k) { return last(k) == last(key); });
  return same > 1 ? key : last(key);
}

std::optional<double> metric_of(const SweepRowResult& r, const std::string& column) {
  if (r.status != RowStatus::finished) return std::nullopt;
  const auto found = r.result.validation.find(column);
  if (found == r.result.validation.end() || !std::isfinite(found->second)) return std::nullopt;
  return found->second;
}

std::optional<double> best_of(const SweepResult& result, const std::string& column) {
  std::optional<double> best;
  for (const SweepRowResult& r : result.rows) {
    const std::optional<double> value = metric_of(r, column);
    if (!value) continue;
    if (!best || (lower_is_better(column) ? *value < *best : *value > *best)) best = value;
  }
  return best;
}

// A metric with the decimals of its column, about four significant digits.
std::string metric_text(const SweepResult& result, const std::string& column, double value) {
  double largest = 0;
  for (const SweepRowResult& r : result.rows) {
    largest = std::max(largest, std::abs(metric_of(r, column).value_or(0)));
  }
  if (largest >= 1e6) return significant(value);
  const int decimals = largest >= 1000 ? 0 : largest >= 100 ? 1 : largest >= 10 ? 2 : 3;
  return fixed(value, decimals + (largest < 1 ? 1 : 0));
}

std::string parameters_text(int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  return count >= 1e6 ? fixed(count / 1e6, 2) + " M" : fixed(count / 1e3, 0) + " k";
}

struct Cell {
  std::string text;
  bool best = false;
};

struct Grid {
  std::vector<std::string> titles;
  size_t first_number = 0;  // first numeric column
  std::vector<std::vector<Cell>> rows;
};

Grid grid_of(const SweepResult& result) {
  const std::vector<std::string> keys = changed_keys(result.plan);
  const std::vector<std::string>& columns = result.plan.columns;
  Grid grid;
  grid.titles = {"row"};
  for (const std::string& key : keys) grid.titles.push_back(short_key(key, keys));
  grid.first_number = grid.titles.size();
  grid.titles.insert(grid.titles.end(), {"parameters", "steps"});
  grid.titles.insert(grid.titles.end(), columns.begin(), columns.end());
  grid.titles.insert(grid.titles.end(), {"tokens/s", "status"});
  for (const SweepRowResult& r : result.rows) {
    std::vector<Cell>& cells = grid.rows.emplace_back();
    cells.push_back({r.row.name});
    for (const std::string& key : keys) {
      const auto found =
          std::ranges::find(r.row.changes, key, &std::pair<std::string, std::string>::first);
      cells.push_back({found == r.row.changes.end() ? "" : cell_text(found->second)});
    }
    const bool finished = r.status == RowStatus::finished;
    cells.push_back({finished ? parameters_text(r.result.parameters) : ""});
    cells.push_back({finished ? std::to_string(r.result.steps) : ""});
    for (const std::string& column : columns) {
      const std::optional<double> value = metric_of(r, column);
      cells.push_back({value ? metric_text(result, column, *value) : "",
                       value && value == best_of(result, column)});
    }
    const double seconds = r.result.seconds;
    cells.push_back(
        {finished && seconds > 0 ? fixed(static_cast<double>(r.result.tokens) / seconds, 0) : ""});
    cells.push_back({name(r.status)});
  }
  return grid;
}

// Characters, not bytes: names may have umlauts.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

std::string text_table(const Grid& grid) {
  std::vector<size_t> widths;
  for (size_t c = 0; c < grid.titles.size(); ++c) {
    size_t width = width_of(grid.titles[c]);
    for (const auto& row : grid.rows) width = std::max(width, width_of(row[c].text));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string value = cell(c);
      const std::string space(widths[c] - width_of(value), ' ');
      line += (c > 0 ? "  " : "") + (c >= grid.first_number ? space + value : value + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line([&](size_t c) { return grid.titles[c]; });
  for (const auto& row : grid.rows) add_line([&](size_t c) { return row[c].text; });
  return text;
}

std::string markdown_table(const Grid& grid) {
  std::string text = "|", line = "|";
  for (size_t c = 0; c < grid.titles.size(); ++c) {
    text += " " + grid.titles[c] + " |";
    line += c >= grid.first_number ? " ---: |" : " --- |";
  }
  text += "\n" + line + "\n";
  for (const auto& row : grid.rows) {
    text += "|";
    for (const Cell& cell : row) {
      std::string value = cell.text;
      for (size_t at = 0; (at = value.find('|', at)) != std::string::npos; at += 2) {
        value.insert(at, "\\");
      }
      text += " " + (cell.best ? "**" + value + "**" : value) + " |";
    }
    text += "\n";
  }
  return text;
}

std::string json_table(const SweepResult& result) {
  OrderedJson rows = OrderedJson::array();
  for (const SweepRowResult& r : result.rows) {
    OrderedJson row{{"name", r.row.name},
                    {"folder", result.plan.out + "/" + r.row.folder},
                    {"status", name(r.status)}};
    row["changes"] = OrderedJson::object();
    for (const auto& [key, value] : r.row.changes) row["changes"][key] = cell_text(value);
    if (r.status == RowStatus::failed) row["error"] = r.error;
    if (r.status == RowStatus::finished) {
      row["parameters"] = r.result.parameters;
      row["steps"] = r.result.steps;
      row["seconds"] = r.result.seconds;
      row["tokens"] = r.result.tokens;
      row["validation"] = r.result.validation;
      row["peak_rss_bytes"] = r.result.peak_rss_bytes;
    }
    rows.push_back(std::move(row));
  }
  const OrderedJson json{{"recipe", result.plan.recipe},
                         {"out", result.plan.out},
                         {"columns", result.plan.columns},
                         {"rows", std::move(rows)}};
  return json_text(json, /*indent=*/2) + "\n";
}

// Bars start below the least value, so that small differences are visible.
std::string bars_svg(const SweepResult& result, const std::string& column) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low = kInfinity, high = -kInfinity;
  for (const SweepRowResult& r : result.rows) {
    if (const auto value = metric_of(r, column)) {
      low = std::min(low, *value), high = std::max(high, *value);
    }
  }
  if (!(low <= high)) return {};
  constexpr double kLetter = 7, kBars = 420, kValue = 80, kLine = 20, kTop = 30;
  size_t longest = 0;
  for (const SweepRowResult& r : result.rows) longest = std::max(longest, width_of(r.row.name));
  const double names = kLetter * static_cast<double>(longest) + 20;
  const std::string width_text = significant(names + kBars + kValue);
  const double start = std::max(0.0, low - 0.25 * std::max(high - low, 1e-9 + 0.02 * high));
  const double height = kTop + kLine * static_cast<double>(result.rows.size()) + 8;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + width_text + " " +
                    significant(height) + "\" width=\"" + width_text + "\" height=\"" +
                    significant(height) +
                    "\" role=\"img\" font-size=\"12\" font-family=\"system-ui,sans-serif\" "
                    "fill=\"currentColor\"><text x=\"" +
                    significant(names) + "\" y=\"16\" font-weight=\"600\">" + escape_html(column) +
                    (start > 0 ? " (bars start at " + significant(start) + ")" : "") + "</text>";
  const std::optional<double> best = best_of(result, column);
  double y = kTop;
  for (const SweepRowResult& r : result.rows) {
    svg += "<text x=\"" + significant(names - 8) + "\" y=\"" + significant(y + 13) +
           "\" text-anchor=\"end\">" + escape_html(r.row.name) + "</text>";
    if (const auto value = metric_of(r, column)) {
      const double width = std::max(1.0, kBars * (*value - start) / std::max(high - start, 1e-12));
      svg += "<rect x=\"" + significant(names) + "\" y=\"" + significant(y + 2) + "\" width=\"" +
             significant(width) + "\" height=\"14\" fill=\"" +
             (value == best ? "#d9480f" : "#1f6feb") + "\"/><text x=\"" +
             significant(names + width + 6) + "\" y=\"" + significant(y + 13) + "\">" +
             metric_text(result, column, *value) + "</text>";
    } else {
      svg += "<text x=\"" + significant(names) + "\" y=\"" + significant(y + 13) +
             "\" opacity=\".6\">" + name(r.status) + "</text>";
    }
    y += kLine;
  }
  return svg + "</svg>";
}

}  // namespace

std::string sweep_table(const SweepResult& result, TableFormat format) {
  if (format == TableFormat::json) return json_table(result);
  const Grid grid = grid_of(result);
  return format == TableFormat::markdown ? markdown_table(grid) : text_table(grid);
}

std::string sweep_html(const SweepResult& result) {
  const Grid grid = grid_of(result);
  std::string html = report_page_head("Sweep of " + result.plan.recipe);
  html += bars_svg(result, result.plan.columns.front()) + "<h2>Table</h2><table><tr>";
  for (const std::string& title : grid.titles) html += "<th>" + escape_html(title);
  html += "</tr>";
  for (const auto& row : grid.rows) {
    html += "<tr>";
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string text = escape_html(row[c].text);
      html += (c >= grid.first_number ? "<td class=\"n\">" : "<td>") +
              (row[c].best ? "<b>" + text + "</b>" : text);
    }
    html += "</tr>";
  }
  html += "</table>";
  for (const SweepRowResult& r : result.rows) {
    if (r.status != RowStatus::failed) continue;
    html += "<p><b>" + escape_html(r.row.name) + "</b>: " + escape_html(r.error) + "</p>";
  }
  return html + "</html>\n";
}

}  // namespace heed
