// Rows of a table by their ids, and the gradient that flows back into them.
#pragma once

#include <cstdint>

namespace heed::kernels {

struct GatherRows {
  const float* table;  // [vocabulary, cols]
  const int32_t* ids;  // [rows], each a row of the table: checked by the caller
  float scale = 1;
  bool accumulate = false;
  float* y;  // [rows, cols]
  int64_t rows, cols;
};

// y[r] (+)= scale table[ids[r]]
void gather_rows(const GatherRows& gather);

struct ScatterRows {
  const float* dy;     // [rows, cols]
  int64_t stride;      // from one row of dy to the next, in floats
  const int32_t* ids;  // [rows]
  float scale = 1;
  float* dtable;         // [vocabulary, cols]
  int64_t table_stride;  // from one row of dtable to the next, in floats
  int64_t rows, cols;
};

// dtable[ids[r]] += scale dy[r], rows in order. Ids repeat, so threads share out the columns, hence
// the strides, and the sums come out the same however they do.
void scatter_add_rows(const ScatterRows& scatter);

}  // namespace heed::kernels
