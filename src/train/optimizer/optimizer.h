// Adam and AdamW over a model's parameters, with gradient clipping and a moving average of the
// weights.
//
//   Optimizer optimizer(parameters, {.kind = OptimizerKind::adamw, .weight_decay = 0.1f});
//   … backward …; gradient_step.finish();
//   const double norm = optimizer.gradient_norm(pool);
//   optimizer.update(pool, learning_rate, optimizer.clip_factor(norm));
//
// or fused into backward, for pooled gradients (without clipping: the norm of the whole gradient is
// known too late):
//
//   optimizer.begin_update(pool, learning_rate);
//   … backward: optimizer.update_weight(pool, weight) …
//   const double norm = optimizer.finish_update(pool);
//
// Both give the same bits.
//
// Results do not depend on the number of threads. The optimizer state is flat arrays in the order of
// Parameters::all_values(), so a checkpoint is a copy of them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "heed/enum_names.h"
#include "kernels/rows/optimizer.h"
#include "model/parameters.h"

namespace heed {

enum class OptimizerKind { adam, adamw };

template <>
inline constexpr std::array kEnumNames<OptimizerKind>{
    EnumName<OptimizerKind>{OptimizerKind::adam, "adam"},
    EnumName<OptimizerKind>{OptimizerKind::adamw, "adamw"}};

// The type of Adam's two moments: bf16 takes half the memory, with stochastic rounding.
enum class MomentType { f32, bf16 };

template <>
inline constexpr std::array kEnumNames<MomentType>{EnumName<MomentType>{MomentType::f32, "f32"},
                                                   EnumName<MomentType>{MomentType::bf16, "bf16"}};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double learning_rate = 1e-3;
  float beta1 = 0.9f;
  float beta2 = 0.98f;  // of Vaswani et al. 2017, as is eps
  float eps = 1e-9f;
  // adamw: decoupled, times the learning rate; adam: L2, added to the gradient. Matrices and
  // embeddings only: norms and biases are never decayed.
  float weight_decay = 0;
  // Relative step size (Adafactor, T5): the learning rate of each matrix is multiplied by its root
  // mean square. T5's embeddings start at 1 and its other weights at about 1/√width.
  bool relative = false;
  float clip_norm = 0;   // maximum gradient norm; 0 disables clipping
  double ema_decay = 0;  // > 0: moving average of the weights, which is validated
  MomentType moments = MomentType::f32;

  bool operator==(const OptimizerOptions&) const = default;
};

// pooled if each weight can be updated during backward: not with clipping, which needs the norm of
// the whole gradient first, and not if other batches or processes add to the gradient.
GradientMemory gradient_memory(const OptimizerOptions& options, int64_t batches_of_a_step);

// Bytes of a weight in training: its value, its full gradient and the optimizer state.
int64_t bytes_per_weight(const OptimizerOptions& options, GradientMemory memory);

// Whether weight decay acts on a weight of this name.
bool decays(std::string_view parameter_name);

class Optimizer {
 public:
  // Borrows the parameters, which must have gradients.
  Optimizer(Parameters& parameters, const OptimizerOptions& options);

  // The L2 norm of the whole gradient, summed in a fixed order.
  double gradient_norm(ThreadPool& pool);
  // Scales a gradient of this norm down to clip_norm; at most 1.
  double clip_factor(double norm) const;
  // One step. The gradient is multiplied by `gradient_scale` first.
  void update(ThreadPool& pool, double learning_rate, double gradient_scale);

  // One step, weight by weight (indexed as Parameters::specs()), each once and in any order.
  void begin_update(ThreadPool& pool, double learning_rate);
  void update_weight(ThreadPool& pool, size_t weight);
  // Updates the weights without a gradient, as by zeros; returns the gradient norm.
  double finish_update(ThreadPool& pool);

  int64_t steps() const { return steps_; }  // updates so far
  bool has_average() const { return !average_.empty(); }
  // Exchanges the weights and their moving average; the second call restores them.
  void swap_average();

  // For checkpoints. Moments are of moment_type().
  MomentType moment_type() const { return options_.moments; }
  std::span<std::byte> moment1() { return moment1_.bytes(); }
  std::span<std::byte> moment2() { return moment2_.bytes(); }
  std::span<float> average() { return average_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  struct Matrix {  // a weight, or one part of a stacked one
    int64_t floats = 0;
    double rms = 0;  // root mean square before the step; `relative` only
  };
  struct Part {  // of one matrix
    int64_t begin;
    int64_t floats;
    size_t weight;
    size_t matrix;
    int64_t first;  // of the matrix' floats
  };
  struct Moment {  // one of the two is empty
    std::vector<float> f32;
    std::vector<uint16_t> bf16;

    std::span<std::byte> bytes() {
      return bf16.empty() ? std::as_writable_bytes(std::span(f32))
                          : std::as_writable_bytes(std::span(bf16));
    }
  };
  void add_parts(const ParameterSpec& spec, int64_t begin, size_t weight);
  void begin_step(ThreadPool& pool, double learning_rate, double gradient_scale);
  void measure_matrices(ThreadPool& pool);
  template <class Body>
  void each_part(ThreadPool& pool, const Body& body);
  template <class GradientOf>
  void step_weight(ThreadPool& pool, size_t weight, const GradientOf& gradient_of);
  void step_part(const Part& part, const float* gradient);
  void sum_squares(ThreadPool& pool, std::span<const float> numbers);
  double norm_of_parts() const;

  Parameters& parameters_;
  OptimizerOptions options_;
  std::vector<Matrix> matrices_;    // in the order of the weights
  std::vector<Part> parts_;         // likewise
  std::vector<size_t> first_part_;  // of each weight, and one more
  std::vector<bool> decays_;        // by weight: whether weight decay applies
  std::vector<bool> updated_;       // in this step
  std::vector<double> squares_;     // of each part's numbers, summed
  Moment moment1_, moment2_;
  std::vector<float> average_;
  kernels::AdamStep step_;  // common to all weights of a step
  double learning_rate_ = 0;
  float keep_ = 0, take_ = 0;  // of the moving average
  int64_t steps_ = 0;
};

}  // namespace heed
