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
                     .samples = {"<ein> Hund & Herr",
                                 "source: a dog\n  output: ein Hund\n  wanted: ein <Hund>"}});
  const std::string html = report_html({.settings = settings,
                                        .history = history,
                                        .name = "my-run",
                                        .facts = {{"recipe", "a.toml"}, {"Git revision", ""}},
                                        .steps = 20,
                                        .metric = "bleu",
                                        .planned_bytes = 5'000'000,
                                        .peak_rss_bytes = 7'000'000,
                                        .parameters = 1234});
  EXPECT_THAT(html, HasSubstr("20 of 20"));
  EXPECT_THAT(html, HasSubstr("33.25</dd>"));
  EXPECT_THAT(html, HasSubstr("train.steps"));
  EXPECT_THAT(html, HasSubstr("a.toml:3"));
  EXPECT_THAT(html, HasSubstr("&lt;ein&gt; Hund &amp; Herr"));
  EXPECT_THAT(html, HasSubstr("7.0 MB"));
  EXPECT_THAT(html, HasSubstr("<h3>bleu</h3><svg"));
  EXPECT_THAT(html, HasSubstr("<h1>my-run: training report</h1>"));
  EXPECT_THAT(html, HasSubstr("<th>recipe<td>a.toml"));
  EXPECT_THAT(html, HasSubstr("<th>best validation bleu<td>33.25 at step 20"));
  EXPECT_THAT(html, Not(HasSubstr("Git revision")));  // unknown
  EXPECT_THAT(html, HasSubstr("<td>a dog<td>ein Hund<td>ein &lt;Hund&gt;"));
  EXPECT_THAT(html,
              HasSubstr(R"({"title":"bleu","curves":[{"name":"bleu","points":[[20,33.25]]}]})"));
  EXPECT_LT(html.size(), 25'000u);
  // Nothing is loaded from elsewhere.
  for (const char* outside : {"http", "src=", "@import", "fetch(", "<link"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
}

TEST(Report, DrawsPointsWhereTheyBelong) {
  const std::string svg = curves_svg("loss", {{"a", {{0, 1}, {100, 3}}}});
  // The first point is at the lower left corner of the frame, the last at the upper right one.
  EXPECT_THAT(svg, HasSubstr("M58 182L410 8"));
  EXPECT_EQ(curves_svg("nothing", {{"a", {}}}), "");
  EXPECT_THAT(curves_svg("one", {{"a", {{5, 2}}}}), HasSubstr("<circle"));
  EXPECT_THAT(curves_svg("flat", {{"a", {{0, 2}, {1, 2}}}}), Not(HasSubstr("nan")));
}

// Long trainings are subsampled, and text in the data cannot end the script.
TEST(Report, StaysSmallAndSafe) {
  const std::vector<TrainSetting> settings;
  std::vector<LogRecord> history;
  for (int64_t step = 1; step <= 50'000; ++step) {
    history.push_back({.kind = "train",
                       .step = step,
                       .values = {{"loss", 5.0 / double(step)}, {"learning_rate", 1.0 / 3}}});
  }
  history.push_back({.kind = "validate", .step = 50'000, .samples = {"</script><b>"}});
  const std::string html =
      report_html({.settings = settings, .history = history, .name = "</title><script>"});
  EXPECT_LT(html.size(), 120'000u);
  size_t scripts = 0;
  for (size_t at = 0; (at = html.find("</script>", at)) != std::string::npos; ++at) ++scripts;
  EXPECT_EQ(scripts, 2u);
}

// The labels of neighbours differ, and steps are whole.
TEST(Report, LabelsTicksSoThatTheyDiffer) {
  const auto labels = [](double low, double high, double steps) {
    const std::string svg = curves_svg("loss", {{"a", {{1, low}, {1 + steps, high}}}});
    std::vector<std::string> list;
    for (size_t at = 0; (at = svg.find("<text", at)) != std::string::npos; ++at) {
      const size_t begin = svg.find('>', at) + 1;
      list.push_back(svg.substr(begin, svg.find('<', begin) - begin));
    }
    return list;
  };
  for (const double steps : {1.0, 3.0, 200.0}) {
    for (const auto& [low, high] : std::vector<std::pair<double, double>>{
             {168'200, 168'230}, {16'400, 17'100}, {0.99991, 0.99996}, {0, 1e-5}}) {
      const std::vector<std::string> list = labels(low, high, steps);
      size_t equal = 0;
      for (size_t i = 1; i < list.size(); ++i) equal += list[i] == list[i - 1];
      EXPECT_EQ(equal, 0u) << testing::PrintToString(list);
    }
  }
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
