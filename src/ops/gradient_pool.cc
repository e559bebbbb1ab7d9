#include "ops/gradient_pool.h"

#include <algorithm>

#include "base/check.h"

namespace heed {
namespace {

constexpr int64_t kAlignFloats = Arena::kAlignment / sizeof(float);

}  // namespace

void GradientPool::measure() {
  HEED_CHECK(std::ranges::none_of(blocks_, &Block::in_use),
             "gradient pool: every buffer must be released before measure()");
  blocks_.clear();
  floats_ = 0;
  numbers_ = nullptr;
}

void GradientPool::provide(size_t needed) {
  measure();
  if (memory_.capacity_bytes() < needed) {
    memory_ = Arena(0);  // free the old memory before allocating
    memory_ = Arena(needed);
  }
  memory_.rewind({0});
  numbers_ = memory_.allocate<float>(memory_.capacity_bytes() / sizeof(float));
}

void GradientPool::free_memory() {
  measure();
  memory_ = Arena(0);
}

void GradientPool::acquire(WeightGradient& gradient) {
  if (gradient.block >= 0) return;
  const int64_t floats = (gradient.value.size() + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
  int best = -1;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& b = blocks_[i];
    if (b.in_use || b.floats < floats) continue;
    if (best < 0 || b.floats < blocks_[static_cast<size_t>(best)].floats) {
      best = static_cast<int>(i);
    }
  }
  if (best < 0) {
    best = static_cast<int>(blocks_.size());
    blocks_.push_back({floats_, floats, false});
    floats_ += floats;
    HEED_CHECK(!numbers_ || bytes() <= memory_.capacity_bytes(),
               "gradient pool: gradients in use must fit the measured size");
  }
  Block& block = blocks_[static_cast<size_t>(best)];
  block.in_use = true;
  gradient.block = best;
  gradient.value.data = numbers_ ? numbers_ + block.begin : nullptr;
}

void GradientPool::release(WeightGradient& gradient) {
  if (gradient.block < 0) return;
  blocks_[static_cast<size_t>(gradient.block)].in_use = false;
  gradient.block = -1;
  gradient.value.data = nullptr;
  gradient.written = false;
}

}  // namespace heed
