#include "ops/gradient_lender.h"

#include <algorithm>

#include "base/check.h"

namespace heed {
namespace {

constexpr int64_t kAlignFloats = Arena::kAlignment / sizeof(float);

}  // namespace

void GradientLender::measure() {
  HEED_CHECK(std::ranges::none_of(blocks_, &Block::is_lent), "a gradient was not given back");
  blocks_.clear();
  floats_ = 0;
  numbers_ = nullptr;
}

void GradientLender::provide() {
  const size_t needed = bytes();
  measure();
  if (memory_.capacity_bytes() < needed) {
    memory_ = Arena(0);  // give the old one back first
    memory_ = Arena(needed);
  }
  memory_.rewind({0});
  numbers_ = memory_.allocate<float>(memory_.capacity_bytes() / sizeof(float));
}

void GradientLender::release() {
  measure();
  memory_ = Arena(0);
}

void GradientLender::lend(WeightGradient& gradient) {
  if (gradient.block >= 0) return;
  const int64_t floats = (gradient.value.size() + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
  int best = -1;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& b = blocks_[i];
    if (b.is_lent || b.floats < floats) continue;
    if (best < 0 || b.floats < blocks_[static_cast<size_t>(best)].floats) {
      best = static_cast<int>(i);
    }
  }
  if (best < 0) {
    best = static_cast<int>(blocks_.size());
    blocks_.push_back({floats_, floats, false});
    floats_ += floats;
    HEED_CHECK(!numbers_ || bytes() <= memory_.capacity_bytes(),
               "more gradients at a time than were measured");
  }
  Block& block = blocks_[static_cast<size_t>(best)];
  block.is_lent = true;
  gradient.block = best;
  gradient.value.data = numbers_ ? numbers_ + block.begin : nullptr;
}

void GradientLender::take_back(WeightGradient& gradient) {
  if (gradient.block < 0) return;
  blocks_[static_cast<size_t>(gradient.block)].is_lent = false;
  gradient.block = -1;
  gradient.value.data = nullptr;
  gradient.written = false;
}

}  // namespace heed
