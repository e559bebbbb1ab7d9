// The life of a run: from a recipe to a model folder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "heed/train.h"
#include "model/network.h"
#include "train/ranks/ranks.h"
#include "train/recipe/preparation.h"
#include "train/recipe/recipe.h"
#include "train/run/step_plan.h"
#include "train/run/trainer.h"

namespace heed {

class TrainingRun {
 public:
  // Borrows the options and the ranks.
  TrainingRun(const TrainOptions& options, Recipe recipe, Ranks& ranks);

  TrainResult run();

 private:
  std::optional<TrainResult> finished_before();
  void keep_seed();
  void prepare_run();
  void check_stop() const;
  TrainResult stopped() const;
  void note(std::string_view text) const;
  void prepare_data();
  void check_same_data() const;
  void share_batches();
  void make_networks();
  const Network* teacher() const { return teacher_ ? &*teacher_ : nullptr; }
  void fit_memory();
  void use_batches(const StepBatches& batches);
  ValidationOptions validation_options() const;
  RunFacts report_facts() const;
  TrainerOptions trainer_options(BatchSource& batches);

  const TrainOptions& options_;
  Recipe recipe_;
  ThreadPool pool_;
  Ranks& ranks_;
  Preparation data_;
  std::vector<ValidationExample> examples_;
  int64_t decoding_bytes_ = kDecodingBytes;
  int64_t prepared_peak_bytes_ = 0;
  std::optional<Network> network_, teacher_;
};

}  // namespace heed
