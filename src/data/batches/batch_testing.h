// For *_test.cc only.
#pragma once

#include <algorithm>

#include "data/batches/batch.h"

namespace heed {

// Rows that have a label, or sequences where each has one label.
inline int64_t label_count(const TrainingBatch& batch) {
  if (batch.labels.empty()) {
    return static_cast<int64_t>(std::max(batch.sequence_labels.size(), batch.scores.size()));
  }
  return static_cast<int64_t>(batch.labels.size()) -
         std::count(batch.labels.begin(), batch.labels.end(), kIgnoreLabel);
}

}  // namespace heed
