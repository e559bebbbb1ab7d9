// The training loop: steps, validation, checkpoints, and resuming from them.
//
//   Trainer trainer({.network = network, .pool = pool, .batches = batches, …, .folder = "run"});
//   TrainResult result = trainer.run();
//
// It is independent of recipes, tokenizers and corpora: batches come from a BatchSource by cursor,
// results go into a folder. All that a step depends on is in the weights, the optimizer state and
// the TrainingState, so a run that was killed resumes bit for bit.
//
// Several ranks (ranks.h) share the batches of each step and of validation; each rank updates its
// copy of the weights with the summed gradients. Only the first rank writes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/train.h"
#include "train/optimizer/schedule.h"
#include "train/ranks/gradient_exchange.h"
#include "train/ranks/ranks.h"
#include "train/recipe/recipe.h"
#include "train/report/run_facts.h"
#include "train/report/training_log.h"
#include "train/run/batch_source.h"
#include "train/run/checkpoint.h"
#include "train/run/evaluate.h"
#include "train/run/step.h"

namespace heed {

// The sections of a recipe that the loop depends on.
struct TrainingSettings {
  TrainSection train{};  // steps must be set; accumulate is of all ranks together
  LossOptions loss{};
  OptimizerOptions optimizer{};
  ScheduleOptions schedule{};
  std::vector<TrainSetting> list{};  // all of them, for the report and for notes of what changed
};

// The callbacks of TrainOptions.
struct TrainCallbacks {
  std::function<void(const TrainProgress&)> progress{};
  std::function<void(std::string_view)> note{};
  const std::atomic<bool>* stop = nullptr;
};

struct TrainerOptions {
  Network& network;  // with gradients, of the memory that gradient_memory() names
  const Network* teacher = nullptr;
  ThreadPool& pool;
  BatchSource& batches;
  Ranks* ranks = nullptr;  // null: this process alone
  std::string folder;      // OUT
  std::function<void(const std::string& folder)> save_beside_model{};
  TrainingSettings settings;
  RunFacts facts{};  // for the report
  ValidationOptions validation{};
  TrainCallbacks callbacks{};
};

class Trainer {
 public:
  explicit Trainer(TrainerOptions options);

  TrainResult run();

 private:
  const TrainSection& train() const { return o_.settings.train; }
  const ValidateSection& validate() const { return o_.validation.section; }
  void note(const std::string& text) const;
  bool stop_requested() const { return o_.callbacks.stop && o_.callbacks.stop->load(); }
  // Ranks stop at the same step, so they agree on it first.
  bool stopping() const { return ranks_.alone() ? stop_requested() : stop_agreed_; }
  bool writes() const { return ranks_.first(); }
  // Whether the optimizer update is fused into backward.
  bool pools_gradients() const { return o_.network.parameters().gradient_pool() != nullptr; }
  // Whether this step is validated.
  bool validation_due() const;
  // Whether a stop interrupted the validation of this step. It is repeated before the next step;
  // only such a step is due for validation and has an unscheduled checkpoint.
  bool validation_interrupted() const { return !state_.scheduled && validation_due(); }
  bool done() const;
  void resume();
  void load_newest();
  void share_weights();
  void share_state();
  void note_changed_settings(const std::string& saved) const;
  void dry_run();
  Metrics dry_run_decoding();
  void step();
  StepLoss run_batches(GradientStep& gradients, const std::vector<TrainingBatch>& batches,
                       const LabelCounts& counts);
  void report_progress(double learning_rate, double norm, int64_t tokens, double seconds);
  void log_step(double learning_rate, double norm);
  // Writes a checkpoint of this step, after its validation if `validating`. If the weights diverged
  // nothing is written, so the newest checkpoint on disk is always a good one. If a stop interrupts
  // the validation, the checkpoint is not scheduled, and validation_interrupted().
  void save(bool validating, bool scheduled = true);
  void check_weights();
  // Throws if the loss is too far above `first` to recover.
  void check_loss(const std::string& name, double loss, double first) const;
  // Both return false if a stop interrupted them.
  bool validate_step(const std::string& model_folder);
  bool finish();
  void commit();
  std::vector<int64_t> write_final_model();
  void write_report();
  void fill_result();
  std::string settings_json() const;
  [[noreturn]] void diverged(const std::string& what) const;

  TrainerOptions o_;
  Ranks alone_;  // ranks_ if none are given
  Ranks& ranks_;
  Optimizer optimizer_;
  Schedule schedule_;
  StepRunner runner_;
  Evaluator evaluator_;
  std::optional<GradientExchange> exchange_;  // with other ranks
  Checkpoints checkpoints_;
  std::unique_ptr<TrainingLog> log_;
  TrainingState state_;
  int64_t saved_step_ = -1;
  double last_loss_ = 0, recent_rate_ = 0;
  double first_validation_loss_ = 0;  // before the first step of this process
  int64_t interval_tokens_ = 0;       // since the last log record of this process: for its speed
  double interval_seconds_ = 0, interval_waiting_ = 0;
  bool stop_agreed_ = false;
  TrainResult result_;
};

}  // namespace heed
