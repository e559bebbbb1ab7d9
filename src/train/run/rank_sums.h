// Sums over ranks of what a step and an evaluation count. Nothing changes for a single process.
#pragma once

#include <cstdint>

#include "train/ranks/ranks.h"
#include "train/run/loss.h"

namespace heed {

// What a rank's batches of one step hold.
struct StepCounts {
  LabelCounts labels{};
  int64_t tokens = 0;
  int64_t stops = 0;  // ranks that were asked to stop
};

// Means are taken over the labels of all ranks, so that the sum of their gradients is the gradient.
void sum_over_ranks(Ranks& ranks, StepCounts& counts);
// A rank whose batches have no loss of some kind takes part too.
void sum_over_ranks(Ranks& ranks, StepLoss& loss);
void sum_over_ranks(Ranks& ranks, Evaluation& evaluation);

}  // namespace heed
