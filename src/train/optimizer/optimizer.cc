#include "train/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/rows/elementwise.h"

namespace heed {
namespace {

// Floats that one thread sums and updates; the sums are added in order, so results do not depend on
// the threads.
constexpr int64_t kPartFloats = 1 << 14;
static_assert(kPartFloats % kernels::kRoundingGroup == 0);
// Of stochastic rounding; dropout uses the seed of the training.
constexpr uint64_t kRoundingSeed = 0x6D6F6D656E74;
// PyTorch's clip_grad_norm_ adds it to the norm.
constexpr double kClipEps = 1e-6;
// Least RMS of a matrix, so that zeros can move: Adafactor's second epsilon.
constexpr double kLeastRms = 1e-3;

}  // namespace

GradientMemory gradient_memory(const OptimizerOptions& options, int64_t batches_of_a_step) {
  const bool pooled = options.clip_norm <= 0 && batches_of_a_step == 1;
  return pooled ? GradientMemory::pooled : GradientMemory::full;
}

int64_t bytes_per_weight(const OptimizerOptions& options, GradientMemory memory) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t moment = options.moments == MomentType::bf16 ? sizeof(uint16_t) : kFloat;
  const int64_t gradient = memory == GradientMemory::full ? kFloat : 0;
  const int64_t average = options.ema_decay > 0 ? kFloat : 0;
  return kFloat + gradient + 2 * moment + average;
}

bool decays(std::string_view name) {
  return !name.ends_with(".gamma") && !name.ends_with(".beta") && !name.ends_with("bias");
}

Optimizer::Optimizer(Parameters& parameters, const OptimizerOptions& options)
    : parameters_(parameters), options_(options) {
  const size_t count = parameters.all_values().size();
  HEED_CHECK(!parameters.gradients().empty(), "optimizer: parameters must have gradients");
  for (Moment* moment : {&moment1_, &moment2_}) {
    if (options.moments == MomentType::bf16) {
      moment->bf16.resize(count);
    } else {
      moment->f32.resize(count);
    }
  }
  if (options.ema_decay > 0) {
    average_.assign(parameters.all_values().begin(), parameters.all_values().end());
  }
  const float* const base = parameters.all_values().data();
  size_t weight = 0;
  for (const ParameterSpec& spec : parameters.specs()) {
    const int64_t begin = parameters.values(spec.name).data() - base;
    first_part_.push_back(parts_.size());
    decays_.push_back(decays(spec.name));
    add_parts(spec, begin, weight++);
  }
  first_part_.push_back(parts_.size());
  squares_.resize(parts_.size());
}

// The parts of a stacked matrix are initialized with different scales, so each has its own RMS.
void Optimizer::add_parts(const ParameterSpec& spec, int64_t begin, size_t weight) {
  const std::vector<int64_t> whole{spec.rows};
  for (const int64_t rows : spec.parts.empty() ? whole : spec.parts) {
    const int64_t size = rows * spec.cols;
    for (int64_t at = 0; at < size; at += kPartFloats) {
      parts_.push_back({.begin = begin + at,
                        .floats = std::min(kPartFloats, size - at),
                        .weight = weight,
                        .matrix = matrices_.size(),
                        .first = at});
    }
    matrices_.push_back({.floats = size});
    begin += size;
  }
}

double Optimizer::norm_of_parts() const {
  double sum = 0;
  for (const double square : squares_) sum += square;
  return std::sqrt(sum);
}

// Threads divide the floats, not the parts, which may be tiny: each takes the parts that begin in
// its range.
template <class Body>
void Optimizer::each_part(ThreadPool& pool, const Body& body) {
  pool.parallel_for(parameters_.count(), kPartFloats, [&](int64_t begin, int64_t end) {
    auto part = std::ranges::lower_bound(parts_, begin, {}, &Part::begin);
    for (; part != parts_.end() && part->begin < end; ++part) body(part - parts_.begin());
  });
}

void Optimizer::sum_squares(ThreadPool& pool, std::span<const float> numbers) {
  each_part(pool, [&](int64_t index) {
    const auto i = static_cast<size_t>(index);
    squares_[i] =
        kernels::sum_of_squares(&numbers[static_cast<size_t>(parts_[i].begin)], parts_[i].floats);
  });
}

double Optimizer::gradient_norm(ThreadPool& pool) {
  const std::span<const float> g = parameters_.all_gradients();
  HEED_CHECK(std::ssize(g) == parameters_.count(), "optimizer: gradients must be full");
  sum_squares(pool, g);
  return norm_of_parts();
}

// max(ε₂, root mean square) of each matrix, before the step (Shazeer & Stern 2018, §8).
void Optimizer::measure_matrices(ThreadPool& pool) {
  sum_squares(pool, parameters_.all_values());
  for (Matrix& matrix : matrices_) matrix.rms = 0;
  for (size_t i = 0; i < parts_.size(); ++i) matrices_[parts_[i].matrix].rms += squares_[i];
  for (Matrix& matrix : matrices_) {
    matrix.rms = std::max(std::sqrt(matrix.rms / static_cast<double>(matrix.floats)), kLeastRms);
  }
}

double Optimizer::clip_factor(double norm) const {
  if (options_.clip_norm <= 0) return 1;
  return std::min(1.0, double{options_.clip_norm} / (norm + kClipEps));
}

void Optimizer::begin_step(ThreadPool& pool, double learning_rate, double gradient_scale) {
  if (options_.relative) measure_matrices(pool);
  learning_rate_ = learning_rate;
  ++steps_;
  const auto t = static_cast<double>(steps_);
  step_ = {.learning_rate = static_cast<float>(learning_rate),
           .beta1 = options_.beta1,
           .beta2 = options_.beta2,
           .eps = options_.eps,
           .bias_correction1 = static_cast<float>(1 - std::pow(double{options_.beta1}, t)),
           .bias_correction2 = static_cast<float>(1 - std::pow(double{options_.beta2}, t)),
           .gradient_scale = static_cast<float>(gradient_scale)};
  // A smaller decay in the first steps, so that the initialization is forgotten (TensorFlow's rule).
  const double decay = std::min(options_.ema_decay, (1 + t) / (10 + t));
  keep_ = static_cast<float>(decay), take_ = static_cast<float>(1 - decay);
}

void Optimizer::step_part(const Part& part, const float* gradient) {
  kernels::AdamStep step = step_;
  const float decay = decays_[part.weight] ? options_.weight_decay : 0;
  step.weight_decay = options_.kind == OptimizerKind::adamw ? decay : 0;
  step.l2 = options_.kind == OptimizerKind::adam ? decay : 0;
  if (options_.relative) {
    const double rms = matrices_[part.matrix].rms;
    step.learning_rate = static_cast<float>(learning_rate_ * rms);
    step.weight_decay /= static_cast<float>(rms);  // a share of the weight already
  }
  float* const values = parameters_.all_values().data() + part.begin;
  const auto at = static_cast<size_t>(part.begin);
  if (options_.moments == MomentType::bf16) {
    const kernels::Rounding rounding{.key = {.seed = kRoundingSeed,
                                             .step = static_cast<uint32_t>(steps_),
                                             .site = static_cast<uint32_t>(part.matrix)},
                                     .first = part.first};
    kernels::adam_bf16(step, rounding, gradient, values, &moment1_.bf16[at], &moment2_.bf16[at],
                       part.floats);
  } else {
    kernels::adam(step, gradient, values, &moment1_.f32[at], &moment2_.f32[at], part.floats);
  }
  if (average_.empty()) return;
  kernels::scale(keep_, &average_[at], &average_[at], part.floats);
  kernels::multiply_add(take_, values, &average_[at], part.floats);
}

void Optimizer::update(ThreadPool& pool, double learning_rate, double gradient_scale) {
  const std::span<const float> g = parameters_.all_gradients();
  HEED_CHECK(std::ssize(g) == parameters_.count(), "optimizer: gradients must be full");
  begin_step(pool, learning_rate, gradient_scale);
  each_part(pool, [&](int64_t i) {
    const Part& part = parts_[static_cast<size_t>(i)];
    step_part(part, g.data() + part.begin);
  });
}

void Optimizer::begin_update(ThreadPool& pool, double learning_rate) {
  begin_step(pool, learning_rate, 1);
  updated_.assign(decays_.size(), false);
}

// gradient_of(part): that of one of the weight's parts.
template <class GradientOf>
void Optimizer::step_weight(ThreadPool& pool, size_t weight, const GradientOf& gradient_of) {
  HEED_CHECK(!updated_[weight], "optimizer: a weight must be updated once per step");
  updated_[weight] = true;
  const auto first = static_cast<int64_t>(first_part_[weight]);
  const int64_t parts = static_cast<int64_t>(first_part_[weight + 1]) - first;
  pool.parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(first + i);
      const float* const gradient = gradient_of(parts_[at]);
      squares_[at] = kernels::sum_of_squares(gradient, parts_[at].floats);
      step_part(parts_[at], gradient);
    }
  });
}

void Optimizer::update_weight(ThreadPool& pool, size_t weight) {
  const float* const gradient = parameters_.gradients()[weight].value.data;
  const int64_t begin = parts_[first_part_[weight]].begin;
  step_weight(pool, weight, [&](const Part& part) { return gradient + (part.begin - begin); });
}

double Optimizer::finish_update(ThreadPool& pool) {
  static constexpr std::array<float, kPartFloats> kZeros{};
  for (size_t weight = 0; weight < updated_.size(); ++weight) {
    if (!updated_[weight]) step_weight(pool, weight, [](const Part&) { return kZeros.data(); });
  }
  return norm_of_parts();
}

void Optimizer::swap_average() {
  HEED_CHECK(has_average(), "optimizer: there must be a moving average");
  std::swap_ranges(average_.begin(), average_.end(), parameters_.all_values().begin());
}

}  // namespace heed
