#include "train/run/trainer.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "base/clock.h"
#include "base/files/atomic_file.h"
#include "base/process_memory.h"
#include "base/text/number_text.h"
#include "heed/error.h"
#include "model/hugging_face/json_values.h"
#include "train/report/report.h"
#include "train/run/rank_sums.h"
#include "train/run/resume.h"

namespace heed {
namespace {

// A loss this far above the first one does not recover.
constexpr double kExplodedFactor = 3, kExplodedOffset = 10;
// Weight of the newest step in the speed that is shown.
constexpr double kRateShare = 0.1;

ScheduleOptions schedule_of(const TrainingSettings& settings) {
  ScheduleOptions schedule = settings.schedule;
  if (schedule.steps == 0) schedule.steps = settings.train.steps;
  return schedule;
}

// The name of the folder: "runs/small" is "small".
std::string run_name(const std::string& folder) {
  std::error_code failed;
  std::filesystem::path path = std::filesystem::absolute(folder, failed).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

}  // namespace

Trainer::Trainer(TrainerOptions options)
    : o_(std::move(options)),
      ranks_(o_.ranks ? *o_.ranks : alone_),
      optimizer_(o_.network.parameters(), o_.settings.optimizer),
      schedule_(schedule_of(o_.settings), o_.settings.optimizer.learning_rate,
                o_.network.config().width),
      runner_({.network = o_.network,
               .pool = o_.pool,
               .teacher = o_.teacher,
               .loss = o_.settings.loss}),
      evaluator_(o_.validation, runner_, o_.batches, ranks_, o_.callbacks.stop),
      checkpoints_(o_.folder + "/checkpoints") {
  HEED_CHECK(train().steps > 0, "the number of steps must be set");
  HEED_CHECK(train().accumulate % ranks_.size() == 0,
             "train.accumulate must be a multiple of the ranks");
  HEED_CHECK(!pools_gradients() || gradient_memory(o_.settings.optimizer, train().accumulate) ==
                                       GradientMemory::pooled,
             "gradients must be full for this training");
  if (ranks_.alone()) return;
  exchange_.emplace(o_.network.parameters(),
                    [this](std::span<float> part) { ranks_.begin_sum(part); });
}

void Trainer::note(const std::string& text) const {
  if (o_.callbacks.note && writes()) o_.callbacks.note(text);
}

bool Trainer::validation_due() const {
  return evaluator_.enabled() &&
         (state_.step >= train().steps || state_.step % validate().every == 0);
}

bool Trainer::done() const {
  if (validation_interrupted()) return false;
  const bool patient = validate().patience == 0 || state_.without_better < validate().patience;
  return state_.step >= train().steps || !patient;
}

std::string Trainer::settings_json() const {
  Json json = Json::object();
  for (const TrainSetting& s : o_.settings.list) json[s.section + "." + s.key] = s.value;
  return json.dump();
}

// Resuming with other settings is allowed, with a note for each.
void Trainer::note_changed_settings(const std::string& saved) const {
  for (const std::string& change : changed_settings(saved, o_.settings.list)) {
    note("note: " + change);
  }
}

// Also after each checkpoint: on different kinds of machines the last bits of the weights drift
// apart, and a resumed run must not differ from one that was not stopped.
void Trainer::share_weights() {
  ranks_.broadcast(o_.network.parameters().all_values());
  ranks_.broadcast(optimizer_.moment1());
  ranks_.broadcast(optimizer_.moment2());
  ranks_.broadcast(optimizer_.average());
  optimizer_.set_steps(ranks_.broadcast(optimizer_.steps()));
}

void Trainer::share_state() {
  if (ranks_.alone()) return;
  std::string json = to_json(state_);
  ranks_.broadcast(json);
  if (!writes()) state_ = state_from_json(json, "the first rank");
  saved_step_ = ranks_.broadcast(saved_step_);
}

void Trainer::resume() {
  if (writes()) load_newest();
  share_weights();
  share_state();
}

void Trainer::load_newest() {
  std::error_code failed;
  std::filesystem::create_directories(o_.folder, failed);
  if (failed) {
    throw Error(ErrorCode::invalid_argument, o_.folder + ": " + failed.message(),
                "--out must be a folder that can be written");
  }
  checkpoints_.abandon_all();
  const std::vector<Checkpoint> saved = checkpoints_.list();
  if (saved.empty()) {
    state_.seed = train().seed;
  } else {
    Checkpoints::load(saved.back(), o_.network, optimizer_);
    state_ = saved.back().state;
    saved_step_ = state_.step;
    note_changed_settings(state_.settings);
    note("resuming at step " + std::to_string(state_.step) + " of " +
         std::to_string(train().steps));
  }
  log_ = std::make_unique<TrainingLog>(o_.folder, state_.step);
  log_->add(
      {.kind = "start",
       .step = state_.step,
       .values = {{"steps", static_cast<double>(train().steps)},
                  {"time", static_cast<double>(std::time(nullptr))},
                  {"parameters", static_cast<double>(parameter_count(o_.network.config()))}}});
}

// The largest batch, a validation batch and the validator run once before the first step, so that
// errors show now and not after hours.
void Trainer::dry_run() {
  Parameters& p = o_.network.parameters();
  const TrainingBatch largest = o_.batches.largest_batch();
  const auto activations = static_cast<int64_t>(runner_.training_bytes(largest));
  GradientStep gradients(p);
  runner_.train(gradients, largest, count_labels(largest), {.seed = state_.seed});
  if (evaluator_.enabled()) {
    Metrics metrics = evaluator_.evaluate_first_batch();
    first_validation_loss_ = metrics.at("loss");
    if (writes()) {
      if (evaluator_.decodes()) metrics.merge(dry_run_decoding());
      evaluator_.chosen_metric(metrics);  // throws if there is no such metric
    }
  }
  const int64_t weights = bytes_per_weight(o_.settings.optimizer, p.gradient_memory()) * p.count();
  const int64_t teacher =
      o_.teacher ? static_cast<int64_t>(o_.teacher->parameters().all_values().size_bytes()) : 0;
  result_.planned_bytes = weights + teacher + activations;
  note("memory: " + megabytes(weights + teacher) + " for weights and optimizer state, " +
       megabytes(activations) + " for the largest batch");
}

Metrics Trainer::dry_run_decoding() {
  const std::string folder = checkpoints_.begin(o_.network, state_.step, o_.save_beside_model);
  try {
    Metrics metrics = evaluator_.decode_few(folder);
    checkpoints_.abandon(state_.step);
    return metrics;
  } catch (...) {
    checkpoints_.abandon(state_.step);
    throw;
  }
}

void Trainer::diverged(const std::string& what) const {
  const std::string kept =
      saved_step_ >= 0 ? "the checkpoint of step " + std::to_string(saved_step_) + " is kept"
                       : "there is no checkpoint yet";
  throw Error(
      ErrorCode::invalid_argument,
      "training diverged at step " + std::to_string(state_.step) + ": " + what + "; " + kept,
      "try a lower optimizer.learning_rate, more schedule.warmup_steps, or "
      "optimizer.clip_norm = 1");
}

void Trainer::check_loss(const std::string& name, double loss, double first) const {
  if (!std::isfinite(loss)) diverged(name + " is " + significant(loss));
  if (loss > kExplodedFactor * first + kExplodedOffset) {
    diverged(name + " is " + significant(loss) + ", the first one was " + significant(first));
  }
}

// A step's loss is that of the weights before its update. The updated weights are checked on the
// next batch, which costs one forward pass.
void Trainer::check_weights() {
  for (const float value : o_.network.parameters().all_values()) {
    if (!std::isfinite(value)) diverged("a weight is " + significant(value));
  }
  Cursor next = state_.cursor;
  StepLoss loss = runner_.evaluate(o_.batches.next(next)).loss;
  sum_over_ranks(ranks_, loss);
  check_loss("the loss after it", loss.loss(), state_.first_loss);
}

StepLoss Trainer::run_batches(GradientStep& gradients, const std::vector<TrainingBatch>& batches,
                              const LabelCounts& counts) {
  StepLoss loss;
  for (size_t i = 0; i < batches.size(); ++i) {
    // Numbered over all ranks, so that dropout is the same for any number of them.
    const int part = static_cast<int>(i) * ranks_.size() + ranks_.rank();
    const bool last = i + 1 == batches.size();
    GradientOutlet outlet;
    if (last && !ranks_.alone()) outlet.exchange = &*exchange_;
    if (pools_gradients()) {
      outlet.use = [this](size_t weight) { optimizer_.update_weight(o_.pool, weight); };
    }
    loss += runner_.train(gradients, batches[i], counts,
                          {.seed = state_.seed, .step = state_.step, .part = part}, outlet);
  }
  return loss;
}

void Trainer::step() {
  const Clock::time_point start = Clock::now();
  std::vector<TrainingBatch> batches;
  StepCounts counts;
  for (int part = ranks_.rank(); part < train().accumulate; part += ranks_.size()) {
    batches.push_back(o_.batches.next(state_.cursor));
    counts.labels += count_labels(batches.back());
    counts.tokens += batches.back().rows();
  }
  counts.stops = stop_requested() ? 1 : 0;
  sum_over_ranks(ranks_, counts);
  if (!ranks_.alone()) stop_agreed_ = counts.stops > 0;
  ++state_.step;
  GradientStep gradients(o_.network.parameters());
  // A fused update changes weights before the loss of the step is checked. If the step diverged,
  // training ends and nothing of it is written.
  const double rate = schedule_.learning_rate(state_.step);
  if (pools_gradients()) optimizer_.begin_update(o_.pool, rate);
  StepLoss loss = run_batches(gradients, batches, counts.labels);
  double norm = 0;
  if (pools_gradients()) {
    norm = optimizer_.finish_update(o_.pool);
  } else {
    if (!ranks_.alone()) {
      exchange_->finish();
      ranks_.finish_sums();
    }
    gradients.finish();
    norm = optimizer_.gradient_norm(o_.pool);
  }
  sum_over_ranks(ranks_, loss);
  last_loss_ = loss.loss();
  if (state_.first_loss == 0) state_.first_loss = last_loss_;
  check_loss("the loss", last_loss_, state_.first_loss);
  if (!std::isfinite(norm)) diverged("the gradient norm is " + significant(norm));
  if (!pools_gradients()) optimizer_.update(o_.pool, rate, optimizer_.clip_factor(norm));
  report_progress(rate, norm, counts.tokens, seconds_since(start));
}

void Trainer::report_progress(double learning_rate, double norm, int64_t tokens, double seconds) {
  state_.tokens += tokens;
  state_.seconds += seconds;
  state_.interval_loss += last_loss_;
  ++state_.interval_steps;
  interval_tokens_ += tokens;
  interval_seconds_ += seconds;
  const double step_rate = 1 / std::max(seconds, 1e-9);
  recent_rate_ =
      recent_rate_ == 0 ? step_rate : (1 - kRateShare) * recent_rate_ + kRateShare * step_rate;
  if (o_.callbacks.progress && writes()) {
    o_.callbacks.progress(
        {.step = state_.step,
         .steps = train().steps,
         .loss = last_loss_,
         .learning_rate = learning_rate,
         .gradient_norm = norm,
         .tokens_per_second = static_cast<double>(interval_tokens_) / interval_seconds_,
         .remaining_seconds = static_cast<double>(train().steps - state_.step) / recent_rate_,
         .epoch = state_.cursor.epoch});
  }
  if (state_.step % train().log_every == 0 || state_.step == train().steps) {
    log_step(learning_rate, norm);
  }
}

void Trainer::log_step(double learning_rate, double norm) {
  LogRecord record{
      .kind = "train",
      .step = state_.step,
      .values = {{"loss", state_.interval_loss / static_cast<double>(state_.interval_steps)},
                 {"learning_rate", learning_rate},
                 {"gradient_norm", norm},
                 {"tokens", static_cast<double>(state_.tokens)},
                 {"epoch", static_cast<double>(state_.cursor.epoch)},
                 {"seconds", state_.seconds},
                 {"tokens_per_second",
                  static_cast<double>(interval_tokens_) / std::max(interval_seconds_, 1e-9)}}};
  if (!ranks_.alone()) {  // the share of the time that backward does not hide
    const double waiting = ranks_.waiting_seconds() - interval_waiting_;
    record.values.emplace_back("waiting", waiting / std::max(interval_seconds_, 1e-9));
    interval_waiting_ = ranks_.waiting_seconds();
  }
  if (log_) log_->add(record);
  state_.interval_loss = 0, state_.interval_steps = 0;
  interval_tokens_ = 0, interval_seconds_ = 0;
}

bool Trainer::validate_step(const std::string& model_folder) {
  std::optional<Evaluator::Result> result = evaluator_.evaluate(model_folder, [this](double loss) {
    check_loss("the validation loss", loss, std::max(state_.first_loss, first_validation_loss_));
  });
  if (!result) return false;
  if (!writes()) return true;  // the first rank broadcasts the state
  const double metric = evaluator_.chosen_metric(result->metrics);
  state_.metric = metric;
  const bool better =
      std::isfinite(metric) &&
      (!state_.best_metric || (lower_is_better(validate().metric) ? metric < *state_.best_metric
                                                                  : metric > *state_.best_metric));
  if (better) {
    state_.best_metric = metric, state_.best_step = state_.step, state_.without_better = 0;
  } else {
    ++state_.without_better;
  }
  LogRecord record{.kind = "validate", .step = state_.step, .samples = std::move(result->samples)};
  std::string text = "step " + std::to_string(state_.step) + ": validation";
  for (const auto& [key, value] : result->metrics) {
    record.values.emplace_back(key, value);
    text += " " + key + " " + significant(value);
  }
  note(text + (better ? " (best)" : ""));
  for (const std::string& sample : record.samples) note("  " + sample);
  log_->add(record);
  result_.validation = std::move(result->metrics);
  return true;
}

void Trainer::save(bool validating, bool scheduled) {
  check_weights();
  if (optimizer_.has_average()) optimizer_.swap_average();
  state_.metric.reset();
  state_.scheduled = scheduled;
  try {
    std::string folder;
    if (writes()) folder = checkpoints_.begin(o_.network, state_.step, o_.save_beside_model);
    if (validating && !validate_step(folder)) state_.scheduled = false;
  } catch (...) {
    if (optimizer_.has_average()) optimizer_.swap_average();
    if (writes()) checkpoints_.abandon(state_.step);
    throw;
  }
  if (optimizer_.has_average()) optimizer_.swap_average();
  if (writes()) commit();
  share_weights();
  share_state();
  if (!validation_interrupted()) return;
  stop_agreed_ = true;
  note("stopped during the validation of step " + std::to_string(state_.step) +
       "; run the same command again to resume");
}

void Trainer::commit() {
  state_.settings = settings_json();
  checkpoints_.commit(o_.network, optimizer_, state_);
  saved_step_ = state_.step;
  const bool averages_last = train().average == Averaging::last;
  const bool averages_best = train().average == Averaging::best;
  checkpoints_.prune(
      {.last = std::max(train().keep_last, averages_last ? train().average_count : 0),
       .best = std::max(train().keep_best, averages_best ? train().average_count : 0),
       .lower_is_better = lower_is_better(validate().metric)});
  write_report();
}

// Writes the average, the best or the last checkpoint to OUT. Returns the steps it is made of.
std::vector<int64_t> Trainer::write_final_model() {
  std::vector<Checkpoint> chosen = checkpoints_.list();
  const std::vector<Checkpoint> all = chosen;
  std::erase_if(chosen, [&](const Checkpoint& c) {
    return !c.state.scheduled && c.state.step != all.back().state.step;
  });
  const auto count =
      static_cast<size_t>(train().average == Averaging::none ? 1 : train().average_count);
  if (train().average == Averaging::last) {
    if (chosen.size() > count)
      chosen.erase(chosen.begin(), chosen.end() - static_cast<int64_t>(count));
  } else {
    chosen = Checkpoints::best(chosen, count, lower_is_better(validate().metric));
    if (chosen.empty()) chosen = {all.back()};
  }
  load_average(chosen, o_.network.parameters());
  o_.network.save(o_.folder);
  if (o_.save_beside_model) o_.save_beside_model(o_.folder);
  std::vector<int64_t> steps;
  for (const Checkpoint& c : chosen) steps.push_back(c.state.step);
  return steps;
}

bool Trainer::finish() {
  runner_.release_memory();  // loading checkpoints needs it
  std::vector<int64_t> chosen;
  if (writes()) chosen = write_final_model();
  ranks_.broadcast(o_.network.parameters().all_values());
  std::string steps;
  for (const int64_t step : chosen) steps += (steps.empty() ? "" : ", ") + std::to_string(step);
  LogRecord record{.kind = "end", .step = state_.step, .text = "steps " + steps};
  if (evaluator_.enabled()) {
    std::optional<Evaluator::Result> result = evaluator_.evaluate(o_.folder);
    if (!result) {
      note(
          "stopped during the validation of the final model; run the same command again to resume");
      return false;
    }
    record.samples = std::move(result->samples);
    result_.validation = std::move(result->metrics);
    for (const auto& [key, value] : result_.validation) record.values.emplace_back(key, value);
  }
  if (!writes()) return true;
  record.values.emplace_back("peak_rss_bytes", static_cast<double>(peak_rss_bytes()));
  log_->add(record);
  std::string text =
      "final model: " + std::string(chosen.size() > 1 ? "mean of steps " : "step ") + steps;
  for (const auto& [key, value] : result_.validation) text += ", " + key + " " + significant(value);
  note(text);
  return true;
}

void Trainer::write_report() {
  const std::string html = report_html({.settings = o_.settings.list,
                                        .history = log_->history(),
                                        .name = run_name(o_.folder),
                                        .facts = o_.facts,
                                        .steps = train().steps,
                                        .metric = validate().metric,
                                        .planned_bytes = result_.planned_bytes,
                                        .peak_rss_bytes = peak_rss_bytes(),
                                        .parameters = parameter_count(o_.network.config())});
  AtomicFile file(o_.folder + "/report.html");
  file.write(html);
  file.commit();
}

void Trainer::fill_result() {
  result_.folder = o_.folder;
  result_.rank = ranks_.rank(), result_.ranks = ranks_.size();
  result_.parameters = parameter_count(o_.network.config());
  result_.steps = state_.step;
  result_.seconds = state_.seconds;
  result_.tokens = state_.tokens;
  result_.loss = last_loss_;
  result_.best_metric = state_.best_metric;
  result_.best_step = state_.best_step;
  result_.peak_rss_bytes = peak_rss_bytes();
}

TrainResult Trainer::run() {
  resume();
  if (!done()) dry_run();
  while (!done() && !stopping()) {
    if (!validation_interrupted()) step();
    const bool last = state_.step >= train().steps;
    const bool saving = last || state_.step % train().checkpoint_every == 0;
    if (validation_due() || saving) save(validation_due());
  }
  result_.finished = done();
  if (!result_.finished && saved_step_ != state_.step && state_.step > 0) {
    save(/*validating=*/false, /*scheduled=*/false);
    note("stopped at step " + std::to_string(state_.step) +
         "; run the same command again to resume");
  }
  if (result_.finished) {
    if (state_.step < train().steps) {
      note("no better " + validate().metric + " since step " + std::to_string(state_.best_step) +
           ": stopping early");
    }
    result_.finished = finish();
    if (writes()) write_report();
  }
  fill_result();
  return result_;
}

}  // namespace heed
