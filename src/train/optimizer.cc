#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/elementwise.h"
#include "kernels/optimizer.h"

namespace heed {
namespace {

// Floats whose squares are summed as one; the sums of blocks are added in order, whoever made them.
constexpr int64_t kNormBlock = 1 << 16;
// Fewer floats than this are not worth a thread.
constexpr int64_t kUpdateGrain = 1 << 14;
// PyTorch's clip_grad_norm_ adds it to the norm.
constexpr double kClipEps = 1e-6;

}  // namespace

bool decays(std::string_view name) {
  return !name.ends_with(".gamma") && !name.ends_with(".beta") && !name.ends_with("bias");
}

Optimizer::Optimizer(Parameters& parameters, const OptimizerOptions& options)
    : parameters_(parameters), options_(options) {
  const size_t count = parameters.all_values().size();
  HEED_CHECK(parameters.all_gradients().size() == count, "parameters without gradients");
  moment1_.resize(count);
  moment2_.resize(count);
  if (options.ema_decay > 0) {
    average_.assign(parameters.all_values().begin(), parameters.all_values().end());
  }
  const float* const base = parameters.all_values().data();
  for (const ParameterSpec& spec : parameters.specs()) {
    const int64_t begin = parameters.values(spec.name).data() - base;
    // The few floats between two weights hold zeros, and stay so in either kind of run.
    if (!runs_.empty()) runs_.back().end = begin;
    if (runs_.empty() || runs_.back().decays != decays(spec.name)) {
      runs_.push_back({begin, begin, decays(spec.name)});
    }
  }
  if (!runs_.empty()) runs_.back().end = static_cast<int64_t>(count);
}

double Optimizer::gradient_norm(ThreadPool& pool) const {
  const std::span<const float> g = parameters_.all_gradients();
  const auto floats = static_cast<int64_t>(g.size());
  const int64_t blocks = (floats + kNormBlock - 1) / kNormBlock;
  std::vector<double> sums(static_cast<size_t>(blocks));
  pool.parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * kNormBlock;
      sums[static_cast<size_t>(b)] =
          kernels::sum_of_squares(g.data() + first, std::min(kNormBlock, floats - first));
    }
  });
  double sum = 0;
  for (const double block : sums) sum += block;
  return std::sqrt(sum);
}

double Optimizer::clip_factor(double norm) const {
  if (options_.clip_norm <= 0) return 1;
  return std::min(1.0, double{options_.clip_norm} / (norm + kClipEps));
}

void Optimizer::update(ThreadPool& pool, double learning_rate, double gradient_scale) {
  ++steps_;
  const auto t = static_cast<double>(steps_);
  kernels::AdamStep step{
      .learning_rate = static_cast<float>(learning_rate),
      .beta1 = options_.beta1,
      .beta2 = options_.beta2,
      .eps = options_.eps,
      .bias_correction1 = static_cast<float>(1 - std::pow(double{options_.beta1}, t)),
      .bias_correction2 = static_cast<float>(1 - std::pow(double{options_.beta2}, t)),
      .gradient_scale = static_cast<float>(gradient_scale)};
  const std::span<const float> g = parameters_.all_gradients();
  const std::span<float> w = parameters_.all_values();
  for (const Run& run : runs_) {
    const float decay = run.decays ? options_.weight_decay : 0;
    step.weight_decay = options_.kind == OptimizerKind::adamw ? decay : 0;
    step.l2 = options_.kind == OptimizerKind::adam ? decay : 0;
    pool.parallel_for(run.end - run.begin, kUpdateGrain, [&](int64_t begin, int64_t end) {
      const int64_t at = run.begin + begin;
      kernels::adam(step, g.data() + at, w.data() + at, moment1_.data() + at, moment2_.data() + at,
                    end - begin);
    });
  }
  if (average_.empty()) return;
  // A young average follows faster, or it would remember the random start (TensorFlow's rule).
  const double decay = std::min(options_.ema_decay, (1 + t) / (10 + t));
  const auto keep = static_cast<float>(decay), take = static_cast<float>(1 - decay);
  pool.parallel_for(static_cast<int64_t>(w.size()), kUpdateGrain, [&](int64_t begin, int64_t end) {
    kernels::scale(keep, average_.data() + begin, average_.data() + begin, end - begin);
    kernels::multiply_add(take, w.data() + begin, average_.data() + begin, end - begin);
  });
}

void Optimizer::swap_average() {
  HEED_CHECK(has_average(), "there is no running average");
  std::swap_ranges(average_.begin(), average_.end(), parameters_.all_values().begin());
}

}  // namespace heed
