#include "serve/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heed::serve {
namespace {

using testing::HasSubstr;

TEST(MetricsTest, CountsRequestsAndTheirTimes) {
  Metrics metrics;
  metrics.count_request({.route = "/a", .status = 200, .seconds = 0.002});
  metrics.count_request({.route = "/a", .status = 200, .seconds = 0.3});
  metrics.count_request({.route = "/a", .status = 400, .seconds = 100});
  metrics.count_tokens(5, 7);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("heed_requests_total{route=\"/a\",status=\"200\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("heed_requests_total{route=\"/a\",status=\"400\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heed_request_seconds_bucket{route=\"/a\",le=\"0.001\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("heed_request_seconds_bucket{route=\"/a\",le=\"0.0025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heed_request_seconds_bucket{route=\"/a\",le=\"60\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("heed_request_seconds_bucket{route=\"/a\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("heed_request_seconds_count{route=\"/a\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("heed_output_tokens_total 7\n"));
}

TEST(MetricsTest, EscapesLabels) { EXPECT_EQ(label("a", "x\"\\\ny"), "a=\"x\\\"\\\\\\ny\""); }

}  // namespace
}  // namespace heed::serve
