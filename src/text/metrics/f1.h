// Precision, recall and their harmonic mean from counts.
#pragma once

#include "heed/metrics.h"

namespace heed {

// Computes the ratios times `scale` (1, or 100 for percentages); 0 instead of a division by 0.
inline void fill_f1(LabelScore& score, double scale) {
  const auto ratio = [scale](int64_t part, int64_t whole) {
    return whole == 0 ? 0 : scale * static_cast<double>(part) / static_cast<double>(whole);
  };
  score.precision = ratio(score.correct, score.predicted);
  score.recall = ratio(score.correct, score.gold);
  const double sum = score.precision + score.recall;
  score.f1 = sum == 0 ? 0 : 2 * score.precision * score.recall / sum;
}

}  // namespace heed
