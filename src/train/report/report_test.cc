#include "train/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Report, ShowsCurvesSettingsAndSamples) {
  const std::vector<TrainSetting> settings{{"train", "steps", "20", "a.toml:3", "updates"}};
  std::vector<LogRecord> history;
  for (const int64_t step : {10, 20}) {
    history.push_back({.kind = "train",
                       .step = step,
                       .values = {{"loss", 5.0 / double(step)},
                                  {"learning_rate", 1e-3},
                                  {"tokens", 1000.0 * double(step)},
                                  {"seconds", double(step)},
                                  {"tokens_per_second", 1000}}});
  }
  history.push_back({.kind = "validate",
                     .step = 20,
                     .values = {{"loss", 0.5}, {"bleu", 33.25}},
                     .samples = {"<ein> Hund & Herr"}});
  const std::string html = report_html({.settings = settings,
                                        .history = history,
                                        .steps = 20,
                                        .metric = "bleu",
                                        .planned_bytes = 5'000'000,
                                        .peak_rss_bytes = 7'000'000,
                                        .parameters = 1234});
  EXPECT_THAT(html, HasSubstr("20 of 20"));
  EXPECT_THAT(html, HasSubstr("33.25"));
  EXPECT_THAT(html, HasSubstr("train.steps"));
  EXPECT_THAT(html, HasSubstr("a.toml:3"));
  EXPECT_THAT(html, HasSubstr("&lt;ein&gt; Hund &amp; Herr"));
  EXPECT_THAT(html, HasSubstr("7.0 MB"));
  EXPECT_THAT(html, HasSubstr(">bleu</text>"));
  for (const char* outside : {"http", "src=", "<script", "@import"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
}

TEST(Report, DrawsPointsWhereTheyBelong) {
  const std::string svg = curves_svg("loss", {{"a", {{0, 1}, {100, 3}}}});
  // The first point is at the lower left corner of the frame, the last at the upper right one.
  EXPECT_THAT(svg, HasSubstr("M60 230L628 28"));
  EXPECT_EQ(curves_svg("nothing", {{"a", {}}}), "");
  EXPECT_THAT(curves_svg("one", {{"a", {{5, 2}}}}), HasSubstr("<circle"));
  EXPECT_THAT(curves_svg("flat", {{"a", {{0, 2}, {1, 2}}}}), Not(HasSubstr("nan")));
}

// A diverged training has such losses: a tick may be less than the number's last bit.
TEST(Report, DrawsFewTicksForAnyNumbers) {
  const auto ticks = [](double a, double b) {
    const std::string svg = curves_svg("loss", {{"a", {{1, a}, {2, b}}}});
    size_t count = 0;
    for (size_t at = 0; (at = svg.find("<line", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  for (const double size : {1e-300, 1e-9, 1.0, 1e17, 1e30, 1e300}) {
    for (const double other : {size, std::nextafter(size, 0), size * (1 + 1e-12), 2 * size, 0.0}) {
      EXPECT_GE(ticks(size, other), 2u) << size << " " << other;
      EXPECT_LE(ticks(size, other), 20u) << size << " " << other;
      EXPECT_LE(ticks(-size, other), 20u) << size << " " << other;
    }
  }
  EXPECT_LE(ticks(-1e308, 1e308), 20u);
}

}  // namespace
}  // namespace heed
