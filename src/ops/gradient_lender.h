// Memory for gradients of weights that are used as soon as they are final.
//
// Where every weight is updated while backward goes on, few gradients exist at a time: that of the
// layer backward is at, and those that more is still to come for (an embedding that is the output
// matrix too). They share memory: a gradient borrows some when its first contribution comes, and
// whoever has used it gives it back.
//
//   lender.measure();  … a measuring run, with take_back() where the real one will have it …
//   lender.provide();  … the real run: at no time does it need more …
#pragma once

#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "ops/weight.h"

namespace heed {

class GradientLender {
 public:
  // From now on, sizes are counted and nothing is lent in truth. Whatever was lent must be back.
  void measure();
  // From now on memory is lent: as much as has been needed since measure().
  void provide();

  // Gives a gradient its memory, uninitialised, unless it has some.
  void lend(WeightGradient& gradient);
  // Its numbers are forgotten: the next contribution is a first one.
  void take_back(WeightGradient& gradient);

  // Gives the memory back until the next provide().
  void release();

  size_t bytes() const { return static_cast<size_t>(floats_) * sizeof(float); }

 private:
  struct Block {
    int64_t begin, floats;
    bool is_lent;
  };

  std::vector<Block> blocks_;  // end to end
  int64_t floats_ = 0;         // of all blocks
  Arena memory_{0};
  float* numbers_ = nullptr;  // null: measuring
};

}  // namespace heed
