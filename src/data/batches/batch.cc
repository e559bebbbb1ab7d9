#include "data/batches/batch.h"

namespace heed {

void Rows::end_sequence() {
  const size_t begin = static_cast<size_t>(offsets.back()), end = tokens.size();
  positions.resize(end);
  for (size_t row = begin; row < end; ++row) positions[row] = static_cast<int32_t>(row - begin);
  token_types.resize(end);
  offsets.push_back(static_cast<int32_t>(end));
}

}  // namespace heed
