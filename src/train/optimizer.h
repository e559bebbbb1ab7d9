// Adam and AdamW over a model's parameters, with clipping and a running average of the weights.
//
//   Optimizer optimizer(parameters, {.kind = OptimizerKind::adamw, .weight_decay = 0.1f});
//   … backward …; parameters.finish_gradients();
//   const double norm = optimizer.gradient_norm(pool);
//   optimizer.update(pool, learning_rate, optimizer.clip_factor(norm));
//
// Results do not depend on the number of threads. The slots are flat arrays in the order of
// Parameters::all_values(), so a checkpoint is a copy of them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/enum_names.h"
#include "base/thread_pool.h"
#include "model/parameters.h"

namespace heed {

enum class OptimizerKind { adam, adamw };

template <>
inline constexpr std::array kEnumNames<OptimizerKind>{
    EnumName<OptimizerKind>{OptimizerKind::adam, "adam"},
    EnumName<OptimizerKind>{OptimizerKind::adamw, "adamw"}};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double learning_rate = 1e-3;
  float beta1 = 0.9f;
  float beta2 = 0.98f;  // the paper's, as is eps
  float eps = 1e-9f;
  // adamw: the share of a weight that is taken away (times the learning rate); adam: added to the
  // gradient. Matrices and embeddings only: norms and biases are never decayed.
  float weight_decay = 0;
  float clip_norm = 0;   // the gradient is scaled down to this length when longer; 0: never
  double ema_decay = 0;  // > 0: a running average of the weights, which is what gets validated

  bool operator==(const OptimizerOptions&) const = default;
};

// Whether weight decay acts on a weight of this name.
bool decays(std::string_view parameter_name);

class Optimizer {
 public:
  // Borrows the parameters, which must have gradients.
  Optimizer(Parameters& parameters, const OptimizerOptions& options);

  // The length of the whole gradient as one vector, summed in an order of its own.
  double gradient_norm(ThreadPool& pool) const;
  // What to multiply the gradient by: 1, or less when it is longer than clip_norm.
  double clip_factor(double norm) const;
  // One step. The gradient is multiplied by `gradient_scale` first.
  void update(ThreadPool& pool, double learning_rate, double gradient_scale);

  int64_t steps() const { return steps_; }  // updates so far
  bool has_average() const { return !average_.empty(); }
  // Exchanges the weights and their running average; call it again to go back.
  void swap_average();

  // For checkpoints.
  std::span<float> moment1() { return moment1_; }
  std::span<float> moment2() { return moment2_; }
  std::span<float> average() { return average_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  struct Run {  // neighbours that are treated alike
    int64_t begin, end;
    bool decays;
  };

  Parameters& parameters_;
  OptimizerOptions options_;
  std::vector<Run> runs_;
  std::vector<float> moment1_, moment2_, average_;
  int64_t steps_ = 0;
};

}  // namespace heed
