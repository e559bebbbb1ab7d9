// Chooses batch size, gradient accumulation, gradient memory and activation checkpointing for --memory.
//
//   StepPlanner planner({.network = network, …, .limit_bytes = limit}, data.largest_batch());
//   const StepBatches batches = planner.choose();     // the recipe's, or smaller and more of them
//   … make the streams with these batches …
//   const StepPlan plan = planner.finish(data.largest_batch());
//
// Smaller batches with more gradient accumulation keep the effective batch size. The choice is
// kept in OUT/memory.json: the memory of a process beside its plan varies from run to run, but a
// resumed training must use the batches it began with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "model/network.h"
#include "train/ranks/ranks.h"
#include "train/recipe/recipe.h"
#include "train/run/memory_plan.h"
#include "train/run/step.h"

namespace heed {

struct StepBatches {
  int64_t batch_tokens = 0, batch_sentences = 0, accumulate = 1;
  bool operator==(const StepBatches&) const = default;
};

StepBatches batches_of(const Recipe& recipe);
void set_batches(Recipe& recipe, const StepBatches& batches, const char* origin);

// The same step in at least `least_parts` batches, a multiple of the ranks, each so much smaller.
// Throws out_of_memory if there would be more than kMostBatches.
StepBatches divide_step(const StepBatches& whole, int64_t least_parts, int ranks);

struct StepPlan {
  bool recompute = false;
  int64_t fixed_bytes = 0;       // weights, optimizer state, program
  int64_t activation_bytes = 0;  // of the largest batch
  int64_t decoding_bytes = 0;    // for the KV cache, when validation decodes
};

// Bytes for the KV cache of validation without a limit.
inline constexpr int64_t kDecodingBytes = int64_t{1} << 30;

class StepPlanner {
 public:
  struct Options {
    Network& network;
    const Network* teacher = nullptr;
    ThreadPool& pool;
    Ranks& ranks;
    const Recipe& recipe;
    int64_t limit_bytes = 0;
  };
  // `largest`: the largest batch of the recipe's size.
  StepPlanner(const Options& options, TrainingBatch largest);

  // What the first rank chooses, or chose when this training began. Throws out_of_memory, with the
  // figures, if not even the longest example fits.
  StepBatches choose();
  // Sets gradients and recompute of the network for the chosen batches, of which `largest` is the
  // largest. Throws out_of_memory if a resumed training no longer fits.
  StepPlan finish(const TrainingBatch& largest);

 private:
  struct Choice {
    int64_t memory_bytes = 0;
    StepBatches requested{}, chosen{};
    bool recompute = false;
    int64_t planned_bytes = 0;  // of weights, optimizer state and a batch; 0: not recorded
  };

  void write_choice() const;
  std::optional<Choice> read_choice() const;
  bool take_earlier_choice();
  MemoryPlan plan_step();
  void set_gradients(GradientMemory memory);
  void share_choice();
  void check_resumed(int64_t planned, int64_t activations, int64_t room) const;
  int64_t decoding_bytes(int64_t room);
  std::string memory_file() const { return o_.recipe.train.out + "/memory.json"; }

  Options o_;
  TrainingBatch largest_;
  StepRunner runner_;
  MemoryPlanOptions limits_;
  Choice choice_;
  bool is_new_ = false;  // chosen by this process: it writes memory.json
};

}  // namespace heed
