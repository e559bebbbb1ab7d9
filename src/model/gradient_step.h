// The order in which the gradients of a step are planned, computed and read.
//
//   const GradientPlan plan = plan_gradients(parameters, pool, tape, run);   // dry runs
//   GradientStep step(parameters);               // gradients of earlier steps are discarded
//   {
//     BackwardPass pass(step, plan);             // once for each batch of the step
//     … forward; tape.backward(ctx, [&] { pass.use_final(update); }) …
//     pass.use_final(update);
//   }                                            // pooled gradients that were not used are released
//   step.finish();                               // full gradients: now they may be read
//
// A BackwardPass needs a plan and a step, so the parts cannot be called in another order.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/thread_pool.h"
#include "model/parameters.h"
#include "ops/ctx.h"

namespace heed {

// What forward and backward of one batch need.
struct GradientPlan {
  size_t activation_bytes = 0;       // arena
  size_t pool_bytes = 0;             // of pooled gradients at one time; 0 for full ones
  std::vector<int> contributions{};  // of each weight: then its gradient is final

  size_t bytes() const { return activation_bytes + pool_bytes; }
  bool operator==(const GradientPlan&) const = default;
};

// Forward and backward with ctx.tape; `after_each` is the argument of Tape::backward().
using TapeRun = std::function<void(Ctx& ctx, const std::function<void()>& after_each)>;

// Runs `run` on shapes alone: once, and for pooled gradients a second time, because only then it is
// known when each gradient is final and its buffer can be reused.
GradientPlan plan_gradients(Parameters& parameters, ThreadPool& pool, Tape& tape,
                            const TapeRun& run);

// The gradients of one optimizer step, summed over its batches. One at a time per Parameters.
class GradientStep {
 public:
  // The first contribution to each gradient overwrites.
  explicit GradientStep(Parameters& parameters);
  GradientStep(const GradientStep&) = delete;
  GradientStep& operator=(const GradientStep&) = delete;

  // Sets gradients without a contribution to zero, so that all can be read. Full gradients only.
  void finish();

 private:
  friend class BackwardPass;
  Parameters& parameters_;
  bool is_finished_ = false;
};

// Forward and backward of one batch. One at a time per step.
class BackwardPass {
 public:
  BackwardPass(GradientStep& step, const GradientPlan& plan);
  ~BackwardPass();
  BackwardPass(const BackwardPass&) = delete;
  BackwardPass& operator=(const BackwardPass&) = delete;

  // Passes pooled gradients that are final to `use` (if any), by weight index, and releases them.
  void use_final(const std::function<void(size_t weight)>& use);

 private:
  Parameters& parameters_;
};

}  // namespace heed
