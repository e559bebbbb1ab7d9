// Time over sequence length, a line for each layer.
#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/bench.h"

#include "base/text/number_text.h"

namespace heed {
namespace {

constexpr double kLeft = 64, kTop = 40, kPlotWidth = 420, kPlotHeight = 300;
constexpr double kPanelWidth = kLeft + kPlotWidth + 200, kPanelHeight = kTop + kPlotHeight + 52;
constexpr const char* kColors[] = {"#d9480f", "#f08c00", "#e64980",
                                   "#1f6feb", "#1098ad", "#2b8a3e"};

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + significant(value) + "\"";
}

std::string text_at(double x, double y, const std::string& text, const char* anchor) {
  return "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + anchor + "\">" +
         text + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
         attribute("y2", y2) + " stroke=\"currentColor\" " + style + "/>\n";
}

// Logarithmic axes, on which a power of n is a straight line.
struct Axis {
  double low, high, start, size;  // size < 0: upwards
  double at(double value) const {
    const double whole = std::log(high) - std::log(low);
    return start + (whole > 0 ? size * (std::log(value) - std::log(low)) / whole : 0);
  }
};

struct Panel {
  int64_t width;
  std::vector<const LayersBenchRow*> rows;
};

std::vector<std::string> layers_of(const Panel& panel) {
  std::vector<std::string> layers;
  for (const LayersBenchRow* row : panel.rows) {
    if (std::find(layers.begin(), layers.end(), row->layer) == layers.end()) {
      layers.push_back(row->layer);
    }
  }
  return layers;
}

std::string panel_svg(const Panel& panel) {
  double shortest = INFINITY, longest = 0, fastest = INFINITY, slowest = 0;
  for (const LayersBenchRow* row : panel.rows) {
    const auto n = static_cast<double>(row->length);
    shortest = std::min(shortest, n), longest = std::max(longest, n);
    fastest = std::min(fastest, row->ms), slowest = std::max(slowest, row->ms);
  }
  const Axis x{shortest, longest, kLeft, kPlotWidth};
  const Axis y{fastest, slowest, kTop + kPlotHeight, -kPlotHeight};
  const double bottom = kTop + kPlotHeight, right = kLeft + kPlotWidth;
  const auto d = static_cast<double>(panel.width);
  std::string svg = "<text" + attribute("x", kLeft) + attribute("y", 22) +
                    " font-weight=\"600\">d = " + std::to_string(panel.width) + "</text>\n";
  svg += line(kLeft, bottom, right, bottom, "stroke-width=\"1\"");
  svg += line(kLeft, kTop, kLeft, bottom, "stroke-width=\"1\"");
  if (d >= shortest && d <= longest) {
    svg += line(x.at(d), kTop, x.at(d), bottom, "stroke-dasharray=\"4 4\" opacity=\".5\"");
    svg += text_at(x.at(d), kTop - 4, "n = d", "middle");
  }
  for (double ms = std::pow(10, std::ceil(std::log10(fastest))); ms <= slowest; ms *= 10) {
    svg += line(kLeft, y.at(ms), right, y.at(ms), "opacity=\".15\"");
    svg += text_at(kLeft - 6, y.at(ms) + 4, significant(ms) + " ms", "end");
  }
  double last_label = -std::numeric_limits<double>::infinity();
  for (const LayersBenchRow* row : panel.rows) {
    if (row->layer != panel.rows.front()->layer) continue;
    const double at = x.at(static_cast<double>(row->length));
    if (at - last_label < 36) continue;
    svg += text_at(at, bottom + 18, std::to_string(row->length), "middle");
    last_label = at;
  }
  svg += text_at((kLeft + right) / 2, bottom + 38, "n, positions of a sequence", "middle");
  const std::vector<std::string> layers = layers_of(panel);
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string color = kColors[i % std::size(kColors)];
    std::string points;
    for (const LayersBenchRow* row : panel.rows) {
      if (row->layer != layers[i]) continue;
      points += significant(x.at(static_cast<double>(row->length))) + "," +
                significant(y.at(row->ms)) + " ";
    }
    svg += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + color + "\" points=\"" +
           points + "\"/>\n";
    const double at = kTop + 16 + 20 * static_cast<double>(i);
    svg += "<rect" + attribute("x", right + 16) + attribute("y", at - 9) +
           " width=\"12\" height=\"4\" fill=\"" + color + "\"/>\n";
    svg += text_at(right + 34, at - 3, layers[i], "start");
  }
  return svg;
}

}  // namespace

std::string layers_chart(const LayersBench& bench) {
  std::vector<Panel> panels;
  for (const LayersBenchRow& row : bench.rows) {
    const auto same = std::find_if(panels.begin(), panels.end(),
                                   [&](const Panel& panel) { return panel.width == row.width; });
    Panel& panel = same != panels.end() ? *same : panels.emplace_back(Panel{row.width, {}});
    panel.rows.push_back(&row);
  }
  const double height = kPanelHeight * static_cast<double>(panels.size());
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
                    significant(kPanelWidth) + " " + significant(height) + "\"" +
                    attribute("width", kPanelWidth) + attribute("height", height) +
                    " role=\"img\" font-size=\"12\" font-family=\"system-ui,sans-serif\" "
                    "fill=\"currentColor\">\n"
                    "<title>Time of one layer over the length of its sequences</title>\n";
  for (size_t i = 0; i < panels.size(); ++i) {
    svg += "<g transform=\"translate(0 " + significant(kPanelHeight * static_cast<double>(i)) +
           ")\">\n" + panel_svg(panels[i]) + "</g>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace heed
