// Shared by the losses: checks of labels, and sums over rows in a fixed order.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ops/ops.h"

namespace heed {

// How many labels count; throws when one is no class and not kIgnoreLabel.
inline int64_t check_labels(std::span<const int32_t> labels, int64_t rows, int64_t classes) {
  HEED_CHECK(static_cast<int64_t>(labels.size()) == rows,
             "loss: labels must have one number for each row");
  int64_t counted = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kIgnoreLabel) continue;
    if (labels[i] < 0 || labels[i] >= classes) {
      throw Error(ErrorCode::invalid_argument,
                  "label " + std::to_string(labels[i]) + " in row " + std::to_string(i) +
                      " is not one of the " + std::to_string(classes) + " classes (0 … " +
                      std::to_string(classes - 1) + ", or " + std::to_string(kIgnoreLabel) +
                      " to ignore the row)");
    }
    ++counted;
  }
  return counted;
}

inline void check_options(const CrossEntropyOptions& o) {
  HEED_CHECK(o.label_smoothing >= 0 && o.label_smoothing < 1,
             "loss: label_smoothing must be in [0, 1)");
  HEED_CHECK(o.soft_cap >= 0, "loss: soft_cap must not be negative");
}

inline double row_sum(const float* values, int64_t rows) {
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r) sum += values[r];
  return sum;
}

}  // namespace heed
