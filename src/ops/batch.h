// Packed rows: all sequences of a batch end to end, with no padding between them.
//
// Only attention and pooling use sequences; every other op works on rows. A batch that
// trains and a batch that serves are the same type.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "ops/mat.h"

namespace heed {

// Borrowed; what it points to must outlive the backward pass.
struct Batch {
  std::span<const int32_t> tokens;       // [rows] ids
  std::span<const int32_t> positions;    // [rows] position of each row within its sequence
  std::span<const int32_t> token_types;  // [rows], or empty
  std::span<const int32_t> offsets;      // [sequences + 1]: sequence s is rows [s] … [s + 1) - 1
  // [rows, width] embeddings that take the place of `tokens`: image patches, audio frames. They are
  // input data and get no gradient.
  ConstMat features{};

  bool has_features() const { return features.cols > 0; }
  int64_t rows() const {
    return has_features() ? features.rows : static_cast<int64_t>(tokens.size());
  }
  int64_t sequences() const {
    return offsets.empty() ? 0 : static_cast<int64_t>(offsets.size()) - 1;
  }
};

// Sequences end to end: from row 0 to the last, none of negative length.
inline void check_offsets(std::span<const int32_t> offsets, int64_t rows) {
  bool fine = !offsets.empty() && offsets.front() == 0 && offsets.back() == rows;
  for (size_t s = 1; s < offsets.size(); ++s) fine = fine && offsets[s - 1] <= offsets[s];
  HEED_CHECK(fine, "offsets must rise from 0 to the number of rows, " + std::to_string(rows));
}

}  // namespace heed
