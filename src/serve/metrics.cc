#include "serve/metrics.h"

#include "base/text/number_text.h"

namespace heed::serve {
namespace {

std::string number(double value) {
  constexpr int kDigits = 10;
  return significant(value, kDigits);
}

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  const std::string n(name);
  return "# HELP " + n + " " + std::string(help) + "\n# TYPE " + n + " " + std::string(type) + "\n";
}

}  // namespace

std::string label(std::string_view name, std::string_view value) {
  std::string text = std::string(name) + "=\"";
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text + "\"";
}

std::string metric_text(std::string_view name, std::string_view type, std::string_view help,
                        const std::vector<std::pair<std::string, double>>& values) {
  std::string text = head(name, type, help);
  for (const auto& [labels, value] : values) {
    text +=
        std::string(name) + (labels.empty() ? "" : "{" + labels + "}") + " " + number(value) + "\n";
  }
  return text;
}

void Metrics::count_request(const Done& done) {
  const std::lock_guard lock(mutex_);
  ++requests_[{done.route, done.status}];
  Latency& latency = latencies_[done.route];
  ++latency.count, latency.sum += done.seconds;
  for (size_t i = 0; i < kBuckets.size(); ++i) {
    if (done.seconds > kBuckets[i]) continue;
    ++latency.counts[i];
    break;
  }
}

void Metrics::count_tokens(int64_t input, int64_t output) {
  const std::lock_guard lock(mutex_);
  input_tokens_ += input, output_tokens_ += output;
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, double>> requests;
  for (const auto& [key, count] : requests_) {
    requests.emplace_back(
        label("route", key.first) + "," + label("status", std::to_string(key.second)),
        static_cast<double>(count));
  }
  std::string text = metric_text("heed_requests_total", "counter", "Requests answered.", requests);
  const std::string name = "heed_request_seconds";
  text += head(name, "histogram",
               "Request duration in seconds, from the head to the last byte of the reply.");
  for (const auto& [route, latency] : latencies_) {
    const std::string of_route = label("route", route);
    int64_t sum = 0;
    for (size_t i = 0; i < kBuckets.size(); ++i) {
      sum += latency.counts[i];
      text += name + "_bucket{" + of_route + "," + label("le", number(kBuckets[i])) + "} " +
              std::to_string(sum) + "\n";
    }
    text += name + "_bucket{" + of_route + ",le=\"+Inf\"} " + std::to_string(latency.count) + "\n";
    text += name + "_sum{" + of_route + "} " + number(latency.sum) + "\n";
    text += name + "_count{" + of_route + "} " + std::to_string(latency.count) + "\n";
  }
  text += metric_text("heed_input_tokens_total", "counter", "Input tokens.",
                      {{"", static_cast<double>(input_tokens_)}});
  text += metric_text("heed_output_tokens_total", "counter", "Generated tokens.",
                      {{"", static_cast<double>(output_tokens_)}});
  return text;
}

}  // namespace heed::serve
