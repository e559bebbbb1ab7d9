#include "train/report/report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <initializer_list>
#include <limits>
#include <sstream>

#include "base/text/json_text.h"
#include "base/text/number_text.h"
#include "model/hugging_face/json_values.h"
#include "train/recipe/recipe.h"
#include "train/run/evaluate.h"

namespace heed {
namespace {

// As in report.js.
constexpr double kWidth = 420, kHeight = 210, kLeft = 58, kRight = 10, kTop = 8, kBottom = 28;
constexpr size_t kCurveColours = 4;  // .c0 … .c3 of report.css
// More than pixels: longer curves are subsampled. The SVGs, which the script replaces, have fewer.
constexpr size_t kMostPoints = 1000, kMostDrawnPoints = 300;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) { low = std::min(low, value), high = std::max(high, value); }
  double place(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

// 1, 2 or 5 times a power of ten, about `parts` of them in the range.
double tick_step(const Range& range, int parts) {
  const double raw = (range.high - range.low) / parts;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

// Widens a range of equal or nearly equal values: adjacent tick labels must differ.
void widen(Range& range) {
  constexpr double kLeastShare = 1e-9;
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  if (range.high - range.low > kLeastShare * size) return;
  const double room = size > 0 ? size / 4 : 0.5;
  range.low -= room, range.high += room;
}

struct Tick {
  double value = 0;
  std::string label;
};

// The multiples of `step` in the range, with as many digits as their labels need to differ. Multiplied
// and not summed, because of rounding.
std::vector<Tick> ticks(const Range& range, double step) {
  constexpr int kMostTicks = 20, kLeastDigits = 4, kMostDigits = 17;
  const double first = std::ceil(range.low / step);
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  const int digits = std::clamp(static_cast<int>(std::ceil(std::log10(largest / step))) + 1,
                                kLeastDigits, kMostDigits);
  std::vector<Tick> list;
  for (int i = 0; i < kMostTicks && (first + i) * step <= range.high; ++i) {
    const double value = (first + i) * step + 0.0;  // and never -0
    list.push_back({value, significant(value, digits)});
  }
  return list;
}
std::vector<Tick> level_ticks(const Range& y) { return ticks(y, tick_step(y, 5)); }
// Steps of a training are whole numbers.
std::vector<Tick> step_ticks(const Range& x) {
  if (x.low == x.high) return {{x.low, std::to_string(static_cast<int64_t>(x.low))}};
  std::vector<Tick> list = ticks(x, std::max(1.0, tick_step(x, 6)));
  for (Tick& tick : list) tick.label = std::to_string(static_cast<int64_t>(tick.value));
  return list;
}

// At most `most` points that are finite, the last one among them.
std::vector<std::pair<double, double>> subsampled(const Curve& curve, size_t most) {
  const auto& points = curve.points;
  const size_t every = points.size() / most + 1;
  std::vector<std::pair<double, double>> list;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i % every != 0 && i + 1 != points.size()) continue;
    if (std::isfinite(points[i].second)) list.push_back(points[i]);
  }
  return list;
}

Curve curve_of(const std::vector<LogRecord>& history, const char* kind, const std::string& key,
               const std::string& name) {
  Curve curve{name, {}};
  for (const LogRecord& record : history) {
    if (record.kind != kind) continue;
    if (const auto value = record.value(key)) {
      curve.points.emplace_back(static_cast<double>(record.step), *value);
    }
  }
  return curve;
}

// "1 h 5 min", "3 min 20 s", "12.5 s".
std::string duration_text(double seconds) {
  if (seconds < 60) return significant(seconds, 3) + " s";
  const auto minutes = static_cast<int64_t>(seconds / 60);
  if (minutes < 60) {
    return std::to_string(minutes) + " min " +
           std::to_string(static_cast<int64_t>(seconds) - 60 * minutes) + " s";
  }
  return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
}

std::string time_text(double seconds_since_1970) {
  const auto time = static_cast<std::time_t>(seconds_since_1970);
  std::tm parts{};
  char text[32];
  if (::gmtime_r(&time, &parts) == nullptr) return {};
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts)};
}

// "12,345,678"
std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

// "33.25 at step 2,000" of the metric that selects the best checkpoint; empty without validation.
std::string best_text(const std::vector<LogRecord>& history, const std::string& metric) {
  const LogRecord* best = nullptr;
  for (const LogRecord& record : history) {
    const auto value = record.kind == "validate" ? record.value(metric) : std::nullopt;
    if (!value || !std::isfinite(*value)) continue;
    const double before = best ? *best->value(metric) : *value;
    if (!best || (lower_is_better(metric) ? *value < before : *value > before)) best = &record;
  }
  if (!best) return {};
  return significant(*best->value(metric)) + " at step " + grouped(best->step);
}

struct Chart {
  std::string title;
  std::vector<Curve> curves;
};

std::vector<Chart> charts_of(const std::vector<LogRecord>& history) {
  std::vector<Chart> charts;
  const auto add = [&](const char* title, std::vector<Curve> curves) {
    std::erase_if(curves, [](const Curve& c) { return subsampled(c, kMostPoints).empty(); });
    if (!curves.empty()) charts.push_back({title, std::move(curves)});
  };
  add("loss", {curve_of(history, "train", "loss", "training"),
               curve_of(history, "validate", "loss", "validation")});
  for (const char* key :
       {"bleu", "chrf", "exact", "accuracy", "f1", "matthews", "pearson", "spearman"}) {
    add(key, {curve_of(history, "validate", key, key)});
  }
  for (const char* key : {"learning_rate", "gradient_norm", "tokens_per_second"}) {
    add(key, {curve_of(history, "train", key, key)});
  }
  return charts;
}

// For the script. JSON in HTML must not contain "</script>" or "<!--".
std::string charts_json(const std::vector<Chart>& charts) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Chart& chart : charts) {
    nlohmann::ordered_json curves = nlohmann::ordered_json::array();
    for (const Curve& curve : chart.curves) {
      nlohmann::ordered_json points = nlohmann::ordered_json::array();
      for (const auto& [step, value] : subsampled(curve, kMostPoints)) {
        constexpr int kDigits = 6;
        points.push_back({static_cast<int64_t>(step), std::stod(significant(value, kDigits))});
      }
      curves.push_back({{"name", curve.name}, {"points", std::move(points)}});
    }
    list.push_back({{"title", chart.title}, {"curves", std::move(curves)}});
  }
  std::string text = json_text(list), safe;
  for (const char c : text) safe += c == '<' ? "\\u003c" : std::string(1, c);
  return safe;
}

std::string charts_html(const std::vector<Chart>& charts) {
  if (charts.empty()) return {};
  std::string html =
      "<h2>Curves</h2><div class=\"controls\" data-script hidden><label><input type=\"checkbox\" "
      "id=\"log\"> Log scale</label><label>Smoothing <input type=\"range\" id=\"smooth\" "
      "min=\"0\" max=\"0.99\" step=\"0.01\" value=\"0\"> <span id=\"smooth-value\">0.00</span>"
      "</label></div><div class=\"curves\">";
  for (const Chart& chart : charts) {
    html += "<figure class=\"card\"><h3>" + escape_html(chart.title) + "</h3>" +
            curves_svg(chart.title, chart.curves) + "<figcaption class=\"legend\">";
    for (size_t c = 0; c < chart.curves.size(); ++c) {
      html += "<span class=\"c" + std::to_string(c % kCurveColours) + "\">" +
              escape_html(chart.curves[c].name) + "</span>";
    }
    html += "</figcaption></figure>";
  }
  return html + "</div>";
}

// The parts of "source: …\n  output: …\n  wanted: …": source, output, reference. Empty: another form.
std::vector<std::string> sample_parts(const std::string& sample) {
  static constexpr std::initializer_list<const char*> kNames[] = {
      {"source: ", "text: ", "prompt: "},
      {"output: ", "predicted: "},
      {"wanted: ", "expected: ", "reference: "}};
  std::vector<std::string> parts;
  std::istringstream lines(sample);
  for (std::string line; std::getline(lines, line);) {
    if (parts.size() == std::size(kNames)) return {};
    line.erase(0, line.find_first_not_of(' '));
    const auto& names = kNames[parts.size()];
    const auto name =
        std::ranges::find_if(names, [&](const char* n) { return line.starts_with(n); });
    if (name == names.end()) return {};
    parts.push_back(line.substr(std::string_view(*name).size()));
  }
  return parts.size() == std::size(kNames) ? parts : std::vector<std::string>{};
}

std::string samples_html(const LogRecord& record) {
  if (record.samples.empty()) return {};
  std::string html = "<h2>Samples of step " + grouped(record.step) + "</h2><div class=\"card\">";
  std::string rows, others;
  for (const std::string& sample : record.samples) {
    const std::vector<std::string> parts = sample_parts(sample);
    if (parts.empty()) others += "<pre>" + escape_html(sample) + "</pre>";
    if (!parts.empty()) rows += "<tr>";
    for (const std::string& part : parts) rows += "<td>" + escape_html(part);
  }
  if (!rows.empty()) {
    html +=
        "<table class=\"samples\"><tr><th>source<th>output<th>reference</tr>" + rows + "</table>";
  }
  return html + others + "</div>";
}

bool is_default(const TrainSetting& s) {
  return s.origin == "default" || s.origin == kFittedOrigin || s.origin.starts_with("preset ");
}

std::string settings_table(const std::vector<TrainSetting>& settings, bool all) {
  std::string html = "<table><tr><th>key<th>value<th>from<th>meaning</tr>";
  for (const TrainSetting& s : settings) {
    if (!all && is_default(s)) continue;
    html += "<tr><td><code>" + escape_html(s.section + "." + s.key) + "</code><td><code>" +
            escape_html(s.value) + "</code><td>" + escape_html(s.origin) + "<td>" +
            escape_html(s.help) + "</tr>";
  }
  return html + "</table>";
}

}  // namespace

std::string escape_html(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string report_page_head(const std::string& title) {
  return "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta "
         "name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta "
         "name=\"color-scheme\" content=\"light dark\"><title>" +
         escape_html(title) + "</title><style>" + std::string(report_style()) +
         "</style><header><h1>" + escape_html(title) +
         "</h1><button id=\"theme\" type=\"button\" data-script hidden>Light / "
         "dark</button></header>";
}

std::string curves_svg(const std::string& title, const std::vector<Curve>& curves) {
  Range x, y;
  for (const Curve& curve : curves) {
    for (const auto& [step, value] : curve.points) {
      if (std::isfinite(value)) x.add(step), y.add(value);
    }
  }
  if (!(x.low <= x.high)) return {};
  widen(y);
  const auto across = [&](double v) { return kLeft + x.place(v) * (kWidth - kLeft - kRight); };
  const auto down = [&](double v) {
    return kHeight - kBottom - y.place(v) * (kHeight - kTop - kBottom);
  };
  std::string svg =
      "<svg viewBox=\"0 0 420 210\" role=\"img\" aria-label=\"" + escape_html(title) + "\">";
  for (const Tick& tick : level_ticks(y)) {
    const std::string height = significant(down(tick.value));
    svg += "<line class=\"grid\" x1=\"58\" x2=\"410\" y1=\"" + height + "\" y2=\"" + height +
           "\"/><text x=\"52\" y=\"" + significant(down(tick.value) + 4) +
           "\" text-anchor=\"end\">" + tick.label + "</text>";
  }
  for (const Tick& tick : step_ticks(x)) {
    svg += "<text x=\"" + significant(across(tick.value)) + "\" y=\"200\" text-anchor=\"middle\">" +
           tick.label + "</text>";
  }
  for (size_t c = 0; c < curves.size(); ++c) {
    const std::string colour = "class=\"c" + std::to_string(c % kCurveColours) + "\"";
    const auto points = subsampled(curves[c], kMostDrawnPoints);
    std::string path;
    for (const auto& [step, value] : points) {
      path += path.empty() ? "M" : "L";
      path += significant(across(step)) + " " + significant(down(value));
    }
    svg += "<path " + colour + " d=\"" + path + "\"/>";
    if (points.size() == 1) {
      svg += "<circle " + colour + " cx=\"" + significant(across(points[0].first)) + "\" cy=\"" +
             significant(down(points[0].second)) + "\" r=\"3\"/>";
    }
  }
  return svg + "</svg>";
}

std::string report_html(const ReportInput& input) {
  const auto& history = input.history;
  const LogRecord *last = nullptr, *validation = nullptr, *end = nullptr, *start = nullptr;
  for (const LogRecord& record : history) {
    if (record.kind == "start" && !start) start = &record;
    if (record.kind == "train") last = &record;
    if (record.kind == "validate") validation = &record;
    if (record.kind == "end") end = &record;
  }
  std::string html =
      report_page_head(input.name.empty() ? "Training report" : input.name + ": training report");
  html += "<dl class=\"facts\">";
  const auto fact = [&](const std::string& name, const std::string& value) {
    html += "<div><dt>" + escape_html(name) + "</dt><dd>" + escape_html(value) + "</dd></div>";
  };
  const double seconds = last ? last->value("seconds").value_or(0) : 0;
  fact("parameters", grouped(input.parameters));
  if (last) {
    fact("steps", grouped(last->step) + " of " + grouped(input.steps));
    fact("training loss", significant(last->value("loss").value_or(0)));
  }
  if (const LogRecord* scores = end ? end : validation) {
    for (const auto& [key, value] : scores->values) {
      if (key == "peak_rss_bytes") continue;
      fact((end ? "final " : "validation ") + key, significant(value));
    }
  }
  if (seconds > 0) {
    fact("time in steps", duration_text(seconds));
    fact("tokens/s", grouped(static_cast<int64_t>(last->value("tokens").value_or(0) / seconds)));
  }
  fact("peak memory", megabytes(input.peak_rss_bytes));
  html += "</dl><h2>Run</h2><div class=\"card\"><table>";
  const auto row = [&](const std::string& name, const std::string& value) {
    if (value.empty()) return;
    html += "<tr><th>" + escape_html(name) + "<td>" + escape_html(value) + "</tr>";
  };
  for (const auto& [name, value] : input.facts) row(name, value);
  if (input.planned_bytes > 0) row("planned memory", megabytes(input.planned_bytes));
  row("best validation " + input.metric, best_text(history, input.metric));
  if (end) row("final model", end->text);
  if (start && start->value("time")) row("started", time_text(*start->value("time")));
  row("updated", time_text(static_cast<double>(std::time(nullptr))));
  html += "</table></div>";

  const std::vector<Chart> charts = charts_of(history);
  html += charts_html(charts);
  if (validation) html += samples_html(*validation);
  html += "<h2>Settings</h2><div class=\"card settings\">" +
          settings_table(input.settings, /*all=*/false) +
          "</div><details><summary>All settings, with the defaults</summary><div class=\"card "
          "settings\">" +
          settings_table(input.settings, /*all=*/true) + "</div></details>";
  if (charts.empty()) return html + "</html>\n";
  return html + "<script type=\"application/json\" id=\"curves-data\">" + charts_json(charts) +
         "</script><script>" + std::string(report_script()) + "</script></html>\n";
}

}  // namespace heed
