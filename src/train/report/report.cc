#include "train/report/report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text/number_text.h"

namespace heed {
namespace {

constexpr double kWidth = 640, kHeight = 260, kLeft = 60, kRight = 12, kTop = 28, kBottom = 30;
constexpr const char* kColours[] = {"#1f6feb", "#d9480f", "#2b8a3e", "#862e9c"};
constexpr size_t kMostPoints = 1000;  // more than pixels: longer curves are subsampled

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

// The multiples of a round number in the range. Multiplied and not summed, because of rounding.
std::vector<double> ticks(const Range& range, int parts) {
  constexpr int kMostTicks = 20;
  const double step = tick_step(range, parts), first = std::ceil(range.low / step);
  std::vector<double> list;
  for (int i = 0; i < kMostTicks && (first + i) * step <= range.high; ++i) {
    list.push_back((first + i) * step + 0.0);  // and never -0
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

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1340px;margin:2em auto;padding:0 "
    "1em;color:#222}"
    "h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}"
    "table{border-collapse:collapse}td,th{padding:2px 10px 2px 0;text-align:left;"
    "vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "svg{max-width:100%;height:auto}pre{white-space:pre-wrap;background:#f6f6f6;padding:.6em}"
    ".curves{display:flex;flex-wrap:wrap;gap:12px}code{font-size:.95em}"
    "@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}pre{background:#222}}";

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
         "name=\"viewport\" content=\"width=device-width\"><title>" +
         escape_html(title) + "</title><style>" + kStyle + "</style><h1>" + escape_html(title) +
         "</h1>";
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
      "<svg viewBox=\"0 0 640 260\" width=\"640\" height=\"260\" role=\"img\" "
      "font-size=\"11\" fill=\"currentColor\"><text x=\"60\" y=\"16\" "
      "font-size=\"13\" font-weight=\"600\">" +
      escape_html(title) + "</text>";
  for (const double v : ticks(y, 5)) {
    svg += "<line x1=\"60\" x2=\"628\" y1=\"" + significant(down(v)) + "\" y2=\"" +
           significant(down(v)) +
           "\" stroke=\"currentColor\" opacity=\".12\"/><text x=\"54\" y=\"" +
           significant(down(v) + 4) + "\" text-anchor=\"end\">" + significant(v) + "</text>";
  }
  for (const double v : x.low < x.high ? ticks(x, 6) : std::vector{x.low}) {
    svg += "<text x=\"" + significant(across(v)) + "\" y=\"248\" text-anchor=\"middle\">" +
           std::to_string(static_cast<int64_t>(v)) + "</text>";
  }
  for (size_t c = 0; c < curves.size(); ++c) {
    const std::string colour = kColours[c % std::size(kColours)];
    const auto& points = curves[c].points;
    const size_t every = points.size() / kMostPoints + 1;
    std::string path;
    for (size_t i = 0; i < points.size(); ++i) {
      if (i % every != 0 && i + 1 != points.size()) continue;
      if (!std::isfinite(points[i].second)) continue;
      path += path.empty() ? "M" : "L";
      path += significant(across(points[i].first)) + " " + significant(down(points[i].second));
    }
    svg +=
        "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"1.6\"/>";
    if (points.size() == 1) {
      svg += "<circle cx=\"" + significant(across(points[0].first)) + "\" cy=\"" +
             significant(down(points[0].second)) + "\" r=\"3\" fill=\"" + colour + "\"/>";
    }
    svg += "<text x=\"" + significant(620 - 110 * static_cast<double>(curves.size() - 1 - c)) +
           "\" y=\"16\" text-anchor=\"end\" fill=\"" + colour + "\">" +
           escape_html(curves[c].name) + "</text>";
  }
  return svg + "</svg>";
}

std::string report_html(const ReportInput& input) {
  const auto& history = input.history;
  std::string html = report_page_head("Training report") + "<table>";
  const auto fact = [&](const std::string& name, const std::string& value) {
    html += "<tr><td>" + escape_html(name) + "<td class=\"n\">" + escape_html(value) + "</tr>";
  };
  const LogRecord *last = nullptr, *validation = nullptr, *end = nullptr;
  double fastest = 0;
  for (const LogRecord& record : history) {
    if (record.kind == "train") {
      last = &record;
      fastest = std::max(fastest, record.value("tokens_per_second").value_or(0));
    }
    if (record.kind == "validate") validation = &record;
    if (record.kind == "end") end = &record;
  }
  fact("parameters", std::to_string(input.parameters));
  if (last) {
    fact("steps", std::to_string(last->step) + " of " + std::to_string(input.steps));
    const double seconds = last->value("seconds").value_or(0);
    fact("time in steps", significant(seconds) + " s");
    if (seconds > 0) {
      fact("tokens/s", significant(last->value("tokens").value_or(0) / seconds) + " (best " +
                           significant(fastest) + ")");
    }
    fact("training loss", significant(last->value("loss").value_or(0)));
  }
  if (validation) {
    for (const auto& [key, value] : validation->values)
      fact("validation " + key, significant(value));
  }
  if (end) {
    fact("final model", end->text);
    for (const auto& [key, value] : end->values) {
      if (key != "peak_rss_bytes") fact("final " + key, significant(value));
    }
  }
  fact("planned memory", megabytes(input.planned_bytes));
  fact("peak memory", megabytes(input.peak_rss_bytes));
  html += "</table><h2>Curves</h2><div class=\"curves\">";
  html += curves_svg("loss", {curve_of(history, "train", "loss", "training"),
                              curve_of(history, "validate", "loss", "validation")});
  for (const char* key :
       {"bleu", "chrf", "exact", "accuracy", "f1", "matthews", "pearson", "spearman"}) {
    const Curve curve = curve_of(history, "validate", key, key);
    if (!curve.points.empty()) html += curves_svg(key, {curve});
  }
  for (const char* key : {"learning_rate", "gradient_norm", "tokens_per_second"}) {
    html += curves_svg(key, {curve_of(history, "train", key, "")});
  }
  html += "</div>";
  if (validation && !validation->samples.empty()) {
    html += "<h2>Samples of step " + std::to_string(validation->step) + "</h2>";
    for (const std::string& sample : validation->samples) {
      html += "<pre>" + escape_html(sample) + "</pre>";
    }
  }
  html += "<h2>Settings</h2><table><tr><th>key<th>value<th>from<th>meaning</tr>";
  for (const TrainSetting& s : input.settings) {
    html += "<tr><td><code>" + escape_html(s.section + "." + s.key) + "</code><td><code>" +
            escape_html(s.value) + "</code><td>" + escape_html(s.origin) + "<td>" +
            escape_html(s.help) + "</tr>";
  }
  return html + "</table></html>\n";
}

}  // namespace heed
