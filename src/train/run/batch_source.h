// Where the trainer gets its batches.
#pragma once

#include "data/batches/stream.h"

namespace heed {

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The training batch at `cursor`, which moves on; it depends on the cursor alone. With several
  // ranks it is this rank's, and the cursor moves past the batches of all.
  virtual TrainingBatch next(Cursor& cursor) = 0;
  // A batch that needs the most memory.
  virtual TrainingBatch largest_batch() = 0;

  // Whether there is validation data. Its batches are the same on every rank; an epoch is all.
  virtual bool has_validation() const = 0;
  virtual TrainingBatch next_validation(Cursor& cursor) = 0;
};

}  // namespace heed
