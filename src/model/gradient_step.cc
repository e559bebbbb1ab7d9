#include "model/gradient_step.h"

#include <algorithm>

#include "base/check.h"
#include "ops/gradient_pool.h"

namespace heed {
namespace {

void release_pooled(Parameters& parameters) {
  GradientPool* const pool = parameters.gradient_pool();
  if (!pool) return;
  for (WeightGradient& gradient : parameters.gradients()) pool->release(gradient);
}

void use_final_gradients(Parameters& parameters, const std::function<void(size_t weight)>& use) {
  const std::span<WeightGradient> gradients = parameters.gradients();
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].block < 0 || gradients[i].arrived < gradients[i].planned) continue;
    if (use) use(i);
    parameters.gradient_pool()->release(gradients[i]);
  }
}

// Returns the arena's peak.
size_t dry_run(Parameters& parameters, ThreadPool& threads, Tape& tape, const TapeRun& run,
               const std::function<void()>& after_each) {
  for (WeightGradient& gradient : parameters.gradients()) gradient.arrived = 0;
  if (GradientPool* pool = parameters.gradient_pool()) pool->measure();
  Arena arena = Arena::measuring();
  Ctx ctx{threads, arena, &tape};
  try {
    run(ctx, after_each);
  } catch (...) {
    tape.clear();
    release_pooled(parameters);
    throw;
  }
  release_pooled(parameters);
  return arena.peak_bytes();
}

}  // namespace

GradientPlan plan_gradients(Parameters& parameters, ThreadPool& pool, Tape& tape,
                            const TapeRun& run) {
  GradientPlan plan;
  plan.activation_bytes = dry_run(parameters, pool, tape, run, {});
  for (WeightGradient& gradient : parameters.gradients()) {
    gradient.planned = gradient.arrived;
    plan.contributions.push_back(gradient.arrived);
  }
  if (!parameters.gradient_pool()) return plan;
  dry_run(parameters, pool, tape, run, [&] { use_final_gradients(parameters, {}); });
  plan.pool_bytes = parameters.gradient_pool()->bytes();
  return plan;
}

GradientStep::GradientStep(Parameters& parameters) : parameters_(parameters) {
  for (WeightGradient& gradient : parameters.gradients()) gradient.written = false;
}

void GradientStep::finish() {
  HEED_CHECK(!parameters_.gradient_pool(), "finish: gradients must be full, got pooled");
  is_finished_ = true;
  for (WeightGradient& gradient : parameters_.gradients()) {
    if (!gradient.written) std::fill_n(gradient.value.data, gradient.value.size(), 0.0f);
  }
}

BackwardPass::BackwardPass(GradientStep& step, const GradientPlan& plan)
    : parameters_(step.parameters_) {
  const std::span<WeightGradient> gradients = parameters_.gradients();
  HEED_CHECK(!step.is_finished_, "a backward pass must belong to a step that is not finished");
  HEED_CHECK(plan.contributions.size() == gradients.size(),
             "a gradient plan must be of the same model");
  for (size_t i = 0; i < gradients.size(); ++i) {
    gradients[i].arrived = 0, gradients[i].planned = plan.contributions[i];
  }
  if (GradientPool* pool = parameters_.gradient_pool()) pool->provide(plan.pool_bytes);
}

BackwardPass::~BackwardPass() { release_pooled(parameters_); }

void BackwardPass::use_final(const std::function<void(size_t weight)>& use) {
  use_final_gradients(parameters_, use);
}

}  // namespace heed
