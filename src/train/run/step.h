// Forward and backward of a batch: its loss and gradients, in memory that is planned before.
//
//   StepRunner runner({.network = network, .pool = pool});
//   GradientStep gradients(network.parameters());
//   StepLoss loss = runner.train(gradients, batch, count_labels(batch), {.seed = 1, .step = step});
//   gradients.finish();                                         // then Optimizer::update()
//
// With pooled gradients (GradientMemory), the optimizer update is fused into backward:
//
//   optimizer.begin_update(pool, rate);
//   const auto update = [&](size_t weight) { optimizer.update_weight(pool, weight); };
//   StepLoss loss = runner.train(gradients, batch, counts, {.step = step}, {.use = update});
//   optimizer.finish_update(pool);
//
// Each loss is a mean over labels, so all batches of a step must be given the label counts of the
// whole step.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>

#include "base/thread_pool.h"
#include "data/batches/batch.h"
#include "model/gradient_step.h"
#include "model/network.h"
#include "train/run/loss.h"
#include "train/run/task_loss.h"

namespace heed {

class GradientExchange;

struct StepTimes {
  double forward_seconds = 0;   // the losses included
  double backward_seconds = 0;  // the fused optimizer update included
};

// Consumers of gradients during backward, as soon as these are final.
struct GradientOutlet {
  // Full gradients: sums them over ranks. train() begins the exchange; the caller finishes it.
  GradientExchange* exchange = nullptr;
  // Pooled gradients: called with the index of each weight; the gradient is released after.
  std::function<void(size_t weight)> use{};
};

// All that the memory of forward and backward depends on: batches of one shape have the same plan.
// Of the sequence lengths that is their sum, their number and the longest: activations have one row
// per token, and the attention workspace and relative biases are as long as the longest sequence.
struct StepShape {
  struct Rows {
    int64_t rows = 0, sequences = 0, longest = 0;
    bool has_positions = false, has_token_types = false;
    auto operator<=>(const Rows&) const = default;
  };
  Rows input, target;
  int64_t selected_rows = -1;  // multiplied by the output matrix; -1: all (TaskLoss::selects_rows)
  bool has_scores = false, has_classes = false, has_next_sentence = false;
  bool activation_checkpointing = false;
  GradientMemory gradients = GradientMemory::full;

  auto operator<=>(const StepShape&) const = default;
};

class StepRunner {
 public:
  struct Options {
    Network& network;  // with gradients, when it trains
    ThreadPool& pool;
    const Network* teacher = nullptr;  // its weights are not trained
    LossOptions loss{};
  };
  // Throws invalid_argument where teacher and student, or R-Drop and the model, do not fit.
  explicit StepRunner(const Options& options);

  // Identifies the random numbers (dropout) of a batch.
  struct Place {
    uint64_t seed = 0;
    int64_t step = 0;
    int part = 0;  // index of the batch in its step
  };

  // Adds to the gradients of `step`. `counts` are those of the whole step. Pooled gradients without
  // a GradientOutlet::use are discarded.
  StepLoss train(GradientStep& step, const TrainingBatch& batch, const LabelCounts& counts,
                 const Place& place, const GradientOutlet& outlet = {});
  Evaluation evaluate(const TrainingBatch& batch);

  // Memory of train(), from dry runs.
  GradientPlan measure(const TrainingBatch& batch);
  // The same, from the cache if a batch of this shape was planned before.
  const GradientPlan& plan(const TrainingBatch& batch);
  // Bytes of measure(), and of evaluate().
  size_t training_bytes(const TrainingBatch& batch) { return measure(batch).bytes(); }
  size_t evaluation_bytes(const TrainingBatch& batch);

  // Frees the memory of activations and pooled gradients until the next batch.
  void release_memory();
  size_t arena_bytes() const { return arena_.capacity_bytes(); }
  const StepTimes& times() const { return times_; }  // of the last train()

 private:
  const TrainingBatch& repeated(const TrainingBatch& batch);
  GradientPlan measure_repeated(const TrainingBatch& batch);
  StepShape shape_of(const TrainingBatch& batch) const;
  const GradientPlan& plan_repeated(const TrainingBatch& batch);
  void reserve(size_t bytes);

  Options o_;
  TaskLoss task_loss_;
  Arena arena_{0};
  Tape tape_;
  TrainingBatch repeated_;  // with R-Drop; backward reads it
  std::map<StepShape, GradientPlan> plans_;
  StepTimes times_;
};

}  // namespace heed
