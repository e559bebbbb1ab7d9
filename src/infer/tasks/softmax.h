#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace heed {

// Softmax in double, so that printed probabilities sum to 1.
inline std::vector<double> softmax(std::span<const float> logits) {
  const float highest = *std::ranges::max_element(logits);
  std::vector<double> probabilities;
  double sum = 0;
  for (const float logit : logits) {
    probabilities.push_back(std::exp(static_cast<double>(logit) - highest));
    sum += probabilities.back();
  }
  for (double& p : probabilities) p /= sum;
  return probabilities;
}

}  // namespace heed
