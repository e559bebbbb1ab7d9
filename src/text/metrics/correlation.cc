#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/error.h"
#include "heed/metrics.h"

namespace heed {
namespace {

void check_pairs(const char* metric, std::span<const double> gold,
                 std::span<const double> predicted) {
  const auto fail = [metric](const std::string& problem) {
    throw Error(ErrorCode::invalid_argument, std::string(metric) + ": " + problem);
  };
  if (gold.size() != predicted.size()) {
    fail("must have as many predictions as gold values, got " + std::to_string(predicted.size()) +
         " and " + std::to_string(gold.size()));
  }
  if (gold.size() < 2) fail("must have two or more pairs, got " + std::to_string(gold.size()));
  const auto is_finite = [](double value) { return std::isfinite(value); };
  for (const std::span<const double> side : {gold, predicted}) {
    const auto bad = std::find_if_not(side.begin(), side.end(), is_finite);
    if (bad != side.end()) {
      fail("numbers must be finite, got " + std::to_string(*bad) + " in pair " +
           std::to_string(bad - side.begin() + 1));
    }
  }
}

std::vector<double> minus_mean(std::span<const double> values) {
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  std::vector<double> result(values.begin(), values.end());
  for (double& value : result) value -= mean;
  return result;
}

double correlate(std::span<const double> a, std::span<const double> b) {
  const auto constant = [](std::span<const double> values) {
    return std::all_of(values.begin(), values.end(),
                       [&](double value) { return value == values.front(); });
  };
  // Asked for, rather than seen in a variance of 0: the mean's rounding may leave a little.
  if (constant(a) || constant(b)) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x = minus_mean(a), y = minus_mean(b);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += x[i] * y[i];
    xx += x[i] * x[i];
    yy += y[i] * y[i];
  }
  return std::clamp(xy / (std::sqrt(xx) * std::sqrt(yy)), -1.0, 1.0);
}

// 1 for the smallest; equal values share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = (static_cast<double>(begin + 1) + static_cast<double>(end)) / 2;
    for (size_t i = begin; i < end; ++i) result[order[i]] = shared;
    begin = end;
  }
  return result;
}

}  // namespace

double pearson(std::span<const double> gold, std::span<const double> predicted) {
  check_pairs("pearson", gold, predicted);
  return correlate(gold, predicted);
}

double spearman(std::span<const double> gold, std::span<const double> predicted) {
  check_pairs("spearman", gold, predicted);
  return correlate(ranks(gold), ranks(predicted));
}

}  // namespace heed
