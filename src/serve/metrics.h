// Server metrics in the Prometheus text format.
//
//   metrics.count_request({.route = "/translate", .status = 200, .seconds = 0.12});
//   std::string text = metrics.text();
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed::serve {

class Metrics {
 public:
  struct Done {
    std::string route;  // the pattern of the route, to bound the number of labels
    int status = 200;
    double seconds = 0;
  };
  void count_request(const Done& done);
  void count_tokens(int64_t input, int64_t output);

  std::string text() const;

 private:
  // Upper bounds of the histogram buckets, in seconds.
  static constexpr std::array<double, 13> kBuckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                      0.25,  0.5,    1,     2.5,  10,    60};
  struct Latency {
    std::array<int64_t, kBuckets.size()> counts{};  // not cumulative here
    int64_t count = 0;
    double sum = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_;
  std::map<std::string, Latency> latencies_;
  int64_t input_tokens_ = 0, output_tokens_ = 0;
};

// One gauge or counter with its help; `values` are pairs of labels (model="gpt", or empty) and value.
std::string metric_text(std::string_view name, std::string_view type, std::string_view help,
                        const std::vector<std::pair<std::string, double>>& values);

// name="value", escaped.
std::string label(std::string_view name, std::string_view value);

}  // namespace heed::serve
