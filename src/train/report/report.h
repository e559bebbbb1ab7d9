// report.html: a self-contained page about a training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/train.h"
#include "train/report/training_log.h"

namespace heed {

struct ReportInput {
  const std::vector<TrainSetting>& settings;
  const std::vector<LogRecord>& history;
  int64_t steps = 0;  // of the whole training
  std::string metric;
  int64_t planned_bytes = 0, peak_rss_bytes = 0, parameters = 0;
};
std::string report_html(const ReportInput& input);

// The start of every page, up to its heading.
std::string report_page_head(const std::string& title);
std::string escape_html(const std::string& text);

// One or more curves over steps as an inline SVG.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};
std::string curves_svg(const std::string& title, const std::vector<Curve>& curves);

}  // namespace heed
