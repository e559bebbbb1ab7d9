// How many tokens a batch may have within a memory limit.
//
// Activations grow with the rows of a batch and depend little on the sequence lengths; a few long
// sequences and many short ones are both measured (dry runs on shapes), and the larger figure
// counts.
#pragma once

#include <cstdint>
#include <optional>

#include "model/config.h"
#include "train/optimizer/optimizer.h"
#include "train/recipe/recipe.h"
#include "train/run/step.h"

namespace heed {

// Saving a checkpoint makes a copy of the weights in the layout of the file.
inline constexpr int64_t kCopiesWhileSaving = 1;

struct MemoryPlanOptions {
  int64_t limit_bytes = 0;
  int64_t requested_tokens = 4096;  // of a batch, both sides
  int64_t longest = 0;              // tokens of the longer side of the longest example
  // The largest batch of the data, which may have far fewer tokens (data.batch_sentences). If it
  // fits, the requested tokens are kept. Null: unknown.
  const TrainingBatch* largest = nullptr;
  int64_t teacher_bytes = 0;      // of its weights
  int64_t process_bytes = 0;      // resident memory that the plan does not count
  int64_t threads = 1;            // each has GEMM buffers
  int64_t bytes_per_weight = 16;  // of optimizer.h: value, gradient, two moments
  Recompute recompute = Recompute::off;
};

struct MemoryPlan {
  int64_t batch_tokens = 0;      // the requested number, or fewer
  int64_t weight_bytes = 0;      // weights, full gradients, optimizer state
  int64_t activation_bytes = 0;  // of such a batch, with pooled gradients
  int64_t room_bytes = 0;        // what the limit leaves for activations; 0 without a limit
  bool recompute = false;        // activation checkpointing
};

// Smaller batches cost little time, recomputing layers a third more: Recompute::automatic does so
// only if batches would otherwise become tiny, or nothing fits. Sets the recompute of `network`,
// which is the runner's. Throws out_of_memory, with the figures, if not even the longest example
// fits.
MemoryPlan plan_memory(StepRunner& runner, Network& network, const MemoryPlanOptions& options);
// Nothing instead of out_of_memory.
std::optional<MemoryPlan> plan_if_it_fits(StepRunner& runner, Network& network,
                                          const MemoryPlanOptions& options);

// What the limit leaves for activations.
int64_t room_for_activations(const ModelConfig& config, const MemoryPlanOptions& options);

// A batch of `tokens` rows in sequences of `length`, with labels for the model's head.
TrainingBatch shape_batch(const ModelConfig& config, int64_t tokens, int64_t length);

}  // namespace heed
