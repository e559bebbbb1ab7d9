// report.html: a self-contained page about a training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/train.h"
#include "train/report/run_facts.h"
#include "train/report/training_log.h"

namespace heed {

struct ReportInput {
  const std::vector<TrainSetting>& settings;
  const std::vector<LogRecord>& history;
  std::string name{};    // of the run
  RunFacts facts{};      // recipe, data, machine, …
  int64_t steps = 0;     // of the whole training
  std::string metric{};  // that selects the best checkpoint
  int64_t planned_bytes = 0, peak_rss_bytes = 0, parameters = 0;
};
std::string report_html(const ReportInput& input);

// report.css and report.js, embedded by CMake.
std::string_view report_style();
std::string_view report_script();

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
