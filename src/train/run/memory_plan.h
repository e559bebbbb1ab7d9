// Memory before the first step: what a batch of so many tokens takes, and how many fit.
//
// Activations grow with the rows of a batch, hardly with how they are cut into sequences; both a
// few long sequences and many short ones are measured (on shapes alone: nothing runs), and the
// larger figure counts.
#pragma once

#include <cstdint>
#include <optional>

#include "model/config.h"
#include "train/optimizer/optimizer.h"
#include "train/recipe/recipe.h"
#include "train/run/step.h"

namespace heed {

// Saving a checkpoint makes a rearranged copy of the weights.
inline constexpr int64_t kCopiesWhileSaving = 1;

struct MemoryPlanOptions {
  int64_t limit_bytes = 0;
  int64_t wanted_tokens = 4096;  // of a batch, both sides
  int64_t longest = 0;           // tokens of the longest example's longer side
  // The largest batch in truth, which may have far fewer tokens (data.batch_sentences). If it fits,
  // nothing has to change. Null: not known.
  const TrainingBatch* largest = nullptr;
  int64_t teacher_bytes = 0;      // of its weights
  int64_t process_bytes = 0;      // what the process has besides
  int64_t threads = 1;            // which each need a little
  int64_t bytes_per_weight = 16;  // of optimizer.h: value, gradient, two moments
  Recompute recompute = Recompute::off;
};

struct MemoryPlan {
  int64_t batch_tokens = 0;      // the wanted number, or fewer
  int64_t weight_bytes = 0;      // weights, kept gradients, the optimizer's slots
  int64_t activation_bytes = 0;  // of such a batch, with gradients that are lent
  int64_t room_bytes = 0;        // what the limit leaves to activations; 0 where there is none
  bool recompute = false;        // layers are run again in backward
};

// Fewer tokens in a batch cost little time, running layers again a third more: that is chosen
// (automatic) only where batches would otherwise become tiny, or nothing fits. `network` is the
// runner's, and is told. Throws out_of_memory, with the figures, when not even the longest example
// fits.
MemoryPlan plan_memory(StepRunner& runner, Network& network, const MemoryPlanOptions& options);
// Nothing in that case.
std::optional<MemoryPlan> plan_if_it_fits(StepRunner& runner, Network& network,
                                          const MemoryPlanOptions& options);

// What the limit leaves to activations.
int64_t room_for_activations(const ModelConfig& config, const MemoryPlanOptions& options);

// A batch of `tokens` rows in all, in sequences of `length`, as the model's head asks for.
TrainingBatch shape_batch(const ModelConfig& config, int64_t tokens, int64_t length);

}  // namespace heed
