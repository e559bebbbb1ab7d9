// How backward functions reach the gradient of a weight.
#pragma once

#include <algorithm>

#include "ops/ctx.h"
#include "ops/gradient_pool.h"
#include "ops/weight.h"

namespace heed {

// To be written when it is the first contribution of the step, added to otherwise. A measuring run
// contributes nothing.
inline GradientTarget gradient_target(const Ctx& ctx, const Weight& weight) {
  WeightGradient& gradient = *weight.gradient;
  ++gradient.arrived;
  if (gradient.pool) gradient.pool->acquire(gradient);
  const bool written = gradient.written;
  if (!ctx.measuring()) gradient.written = true;
  return {gradient.value, written};
}

// To be added to in any case: zero before the first contribution. For sparse additions.
inline Mat zeroed_gradient(Ctx& ctx, const Weight& weight) {
  const GradientTarget target = gradient_target(ctx, weight);
  if (!target.accumulate) {
    ctx.parallel(target.value.rows, row_grain(target.value.cols), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        std::fill_n(target.value.row(r), target.value.cols, 0.0f);
      }
    });
  }
  return target.value;
}

}  // namespace heed
