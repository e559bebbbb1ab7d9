// The loop: steps, validation, checkpoints, and the way back from them.
//
//   Trainer trainer({.network = network, .pool = pool, .source = source, …, .folder = "run"});
//   TrainResult result = trainer.run();
//
// It knows nothing of recipes, tokenizers and corpora: it asks a BatchSource for batches by cursor
// and writes into a folder. Everything that a step depends on is in the weights, the optimizer's
// slots and the TrainingState, which is why a training that was killed goes on with the same bits.
//
// Several ranks (ranks.h) share the batches of each step, and validation's; all of them update
// their own copy of the weights by the sum of their gradients. Only the first one writes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/stream.h"
#include "heed/train.h"
#include "train/optimizer/schedule.h"
#include "train/ranks/gradient_exchange.h"
#include "train/ranks/ranks.h"
#include "train/recipe/recipe.h"
#include "train/report/training_log.h"
#include "train/run/checkpoint.h"
#include "train/run/step.h"

namespace heed {

// Where batches come from. What next() gives depends on the cursor alone. With several ranks it
// gives this rank's, and moves the cursor past those of all; validation() gives every rank all.
struct BatchSource {
  std::function<TrainingBatch(Cursor&)> next;
  std::function<TrainingBatch()> largest{};            // what memory must suffice for; optional
  std::function<TrainingBatch(Cursor&)> validation{};  // one epoch is all; empty: none
};

struct TrainerOptions {
  Network& network;  // with gradients: kept, or lent where gradient_memory() says so
  ThreadPool& pool;
  BatchSource source;
  std::string folder;  // OUT
  TrainSection train;  // steps must be known; accumulate is of all ranks together
  ValidateSection validate{};
  LossOptions loss{};
  OptimizerOptions optimizer{};
  ScheduleOptions schedule{};
  const Network* teacher = nullptr;
  std::vector<TrainSetting> settings{};  // for the report, and to tell what has changed
  std::function<void(const std::string& folder)> save_beside_model{};
  ValidationRequest request{};  // what the validator is asked, but for the model
  Validator validator{};
  std::function<void(const TrainProgress&)> progress{};
  std::function<void(std::string_view)> note{};
  const std::atomic<bool>* stop = nullptr;
  Ranks* ranks = nullptr;  // null: this process alone
};

// Whether a smaller value of a metric is the better one.
bool lower_is_better(std::string_view metric);

class Trainer {
 public:
  explicit Trainer(TrainerOptions options);

  TrainResult run();

 private:
  void note(const std::string& text) const;
  bool stop_requested() const { return o_.stop && o_.stop->load(); }
  // All ranks stop at the same step, so they have to agree.
  bool stopping() const { return ranks_.alone() ? stop_requested() : stop_agreed_; }
  bool writes() const { return ranks_.first(); }
  // Whether weights are updated while backward goes on.
  bool pools_gradients() const { return o_.network.parameters().gradient_pool() != nullptr; }
  bool validates() const { return static_cast<bool>(o_.source.validation); }
  // Whether this step is one to validate after.
  bool validation_due() const;
  // Whether that was begun, and stopped: it is done anew before the next step. Only such a step has
  // both a validation and a checkpoint that is not scheduled.
  bool unjudged() const { return !state_.scheduled && validation_due(); }
  bool done() const;
  void resume();
  void load_newest();
  void share_weights();
  void share_state();
  // Counts and tokens of the batches that all ranks have for this step.
  void agree(LabelCounts& counts, int64_t& tokens);
  void share_loss(StepLoss& loss);
  void share(Evaluation& evaluation);
  void note_changed_settings(const std::string& saved) const;
  void rehearse();
  void step();
  void log_step(double learning_rate, double norm);
  // Writes a checkpoint of this step; with `validating`, judges it first. One that is not good to
  // go on from is never written: what is on the disk is the last good one. Where a stop ends the
  // judging, it is not scheduled, and unjudged().
  void save(bool validating, bool scheduled = true);
  void check_weights();
  // Throws when a loss is one that training does not come back from. `usual`: what it was at first.
  void check_loss(const std::string& name, double loss, double usual) const;
  static std::map<std::string, double> metrics_of(const Evaluation& total);
  std::map<std::string, double> rehearse_decoding();
  std::map<std::string, double> evaluate();
  // Asks the validator, if there is one. A stop, if one is given, throws cancelled.
  ValidationScores decode(const std::string& model_folder, size_t most_examples,
                          const std::atomic<bool>* stop = nullptr);
  // evaluate() and decode(), one set of values; the samples go to `samples`. Nothing when a stop
  // came first.
  std::optional<std::map<std::string, double>> all_metrics(
      const std::string& model_folder, std::vector<std::string>& samples,
      const std::function<void(double loss)>& before_decoding = {});
  double chosen_metric(const std::map<std::string, double>& values) const;
  // Both return whether they came to their end before a stop.
  bool judge(const std::string& model_folder);
  bool finish();
  void commit();
  std::vector<int64_t> write_final_model();
  void write_report();
  std::string settings_json() const;
  [[noreturn]] void diverged(const std::string& what) const;

  TrainerOptions o_;
  Ranks alone_;  // what ranks_ is when none are given
  Ranks& ranks_;
  Optimizer optimizer_;
  Schedule schedule_;
  StepRunner runner_;
  std::optional<GradientExchange> exchange_;  // with other ranks
  Checkpoints checkpoints_;
  std::unique_ptr<TrainingLog> log_;
  TrainingState state_;
  int64_t saved_step_ = -1;
  int64_t largest_activations_ = 0;  // bytes
  double last_loss_ = 0, recent_rate_ = 0;
  double rehearsed_loss_ = 0;    // of validation, before this process' first step
  int64_t interval_tokens_ = 0;  // since this process began its interval: speed only
  double interval_seconds_ = 0, interval_waiting_ = 0;
  bool stop_agreed_ = false;
  TrainResult result_;
};

}  // namespace heed
