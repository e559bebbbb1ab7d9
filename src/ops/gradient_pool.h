// A pool of gradient buffers, for the fused backward and optimizer update.
//
// When each weight is updated as soon as its gradient is final, few gradients exist at a time: those
// of the layer that backward is in, and those with further contributions to come (an embedding that
// is also the output matrix). A gradient acquires a buffer at its first contribution and the
// optimizer releases it after the update.
//
//   pool.measure();           … a dry run, with release(gradient) where the real run has it …
//   pool.provide(pool.bytes());  … the real run, which never needs more …
#pragma once

#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "ops/weight.h"

namespace heed {

class GradientPool {
 public:
  // Counts sizes from now on and hands out no memory. No buffer may be in use.
  void measure();
  // Hands out memory from now on, `bytes` in total: those of a dry run of the same shape.
  void provide(size_t bytes);

  // Gives the gradient a buffer, uninitialised, unless it has one.
  void acquire(WeightGradient& gradient);
  // Returns the buffer; the next contribution is written, not added.
  void release(WeightGradient& gradient);

  // Frees the pool's memory until the next provide().
  void free_memory();

  size_t bytes() const { return static_cast<size_t>(floats_) * sizeof(float); }

 private:
  struct Block {
    int64_t begin, floats;
    bool in_use;
  };

  std::vector<Block> blocks_;  // end to end
  int64_t floats_ = 0;         // of all blocks
  Arena memory_{0};
  float* numbers_ = nullptr;  // null: measuring
};

}  // namespace heed
