#include "data/batches/batch.h"

#include <algorithm>

namespace heed {

void Rows::end_sequence() {
  const size_t begin = static_cast<size_t>(offsets.back()), end = tokens.size();
  positions.resize(end);
  for (size_t row = begin; row < end; ++row) positions[row] = static_cast<int32_t>(row - begin);
  token_types.resize(end);
  offsets.push_back(static_cast<int32_t>(end));
}

int64_t TrainingBatch::label_count() const {
  if (!labels.empty()) {
    return std::count_if(labels.begin(), labels.end(),
                         [](int32_t label) { return label != kIgnoreLabel; });
  }
  return static_cast<int64_t>(std::max(sequence_labels.size(), scores.size()));
}

}  // namespace heed
