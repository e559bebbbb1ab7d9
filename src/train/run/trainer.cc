#include "train/run/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/number_text.h"
#include "base/process_memory.h"
#include "heed/error.h"
#include "model/hugging_face/json_values.h"
#include "train/report/report.h"

namespace heed {
namespace {

// A loss this much above the first one does not come back.
constexpr double kExplodedFactor = 3, kExplodedOffset = 10;
// Weight of the newest step in the speed that is shown.
constexpr double kRateShare = 0.1;
// Perplexities beyond this are shown as this.
constexpr double kMostNats = 50;

}  // namespace

bool lower_is_better(std::string_view metric) { return metric == "loss" || metric == "perplexity"; }

Trainer::Trainer(TrainerOptions options)
    : o_(std::move(options)),
      ranks_(o_.ranks ? *o_.ranks : alone_),
      optimizer_(o_.network.parameters(), o_.optimizer),
      schedule_(
          [&] {
            ScheduleOptions s = o_.schedule;
            if (s.steps == 0) s.steps = o_.train.steps;
            return s;
          }(),
          o_.optimizer.learning_rate, o_.network.config().width),
      runner_({.network = o_.network, .pool = o_.pool, .teacher = o_.teacher, .loss = o_.loss}),
      checkpoints_(o_.folder + "/checkpoints") {
  HEED_CHECK(o_.train.steps > 0, "the number of steps is not known");
  HEED_CHECK(o_.train.accumulate % ranks_.size() == 0, "batches that the ranks cannot share");
  HEED_CHECK(!pools_gradients() ||
                 gradient_memory(o_.optimizer, o_.train.accumulate) == GradientMemory::pooled,
             "gradients must be kept for this training");
  if (ranks_.alone()) return;
  exchange_.emplace(o_.network.parameters(),
                    [this](std::span<float> part) { ranks_.begin_sum(part); });
}

void Trainer::note(const std::string& text) const {
  if (o_.note && writes()) o_.note(text);
}

bool Trainer::validation_due() const {
  return validates() && (state_.step >= o_.train.steps || state_.step % o_.validate.every == 0);
}

bool Trainer::done() const {
  if (unjudged()) return false;
  const bool patient = o_.validate.patience == 0 || state_.without_better < o_.validate.patience;
  return state_.step >= o_.train.steps || !patient;
}

std::string Trainer::settings_json() const {
  Json json = Json::object();
  for (const TrainSetting& s : o_.settings) json[s.section + "." + s.key] = s.value;
  return json.dump();
}

// Going on with other settings is allowed, and never goes unnoticed. What the tokenizer and the
// data decide is no setting, and once was kept as the preset has it.
void Trainer::note_changed_settings(const std::string& saved) const {
  const Json before = Json::parse(saved, nullptr, /*allow_exceptions=*/false);
  if (!before.is_object()) return;
  const std::map<std::string, std::string> defaults = default_settings();
  for (const TrainSetting& s : o_.settings) {
    const std::string key = s.section + "." + s.key;
    const auto found = before.find(key);
    // What the checkpoint does not know yet was as it is by default.
    const auto by_default = s.section == "model" ? defaults.end() : defaults.find(key);
    std::string was = by_default == defaults.end() ? s.value : by_default->second;
    if (found != before.end()) was = found->is_string() ? found->get<std::string>() : s.value;
    if (was == s.value || s.origin == kFittedOrigin) continue;
    note("note: " + key + " was " + was + ", is now " + s.value);
  }
}

// What the first rank has is what all go on from. Also after a checkpoint: on machines of different
// kinds the last bits of the weights drift apart, and a run that is resumed must not differ.
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
                "--out takes a folder that can be written");
  }
  checkpoints_.abandon_all();
  const std::vector<Checkpoint> saved = checkpoints_.list();
  if (saved.empty()) {
    state_.seed = o_.train.seed;
  } else {
    Checkpoints::load(saved.back(), o_.network, optimizer_);
    state_ = saved.back().state;
    saved_step_ = state_.step;
    note_changed_settings(state_.settings);
    note("resuming at step " + std::to_string(state_.step) + " of " +
         std::to_string(o_.train.steps));
  }
  log_ = std::make_unique<TrainingLog>(o_.folder, state_.step);
  log_->add(
      {.kind = "start",
       .step = state_.step,
       .values = {{"steps", static_cast<double>(o_.train.steps)},
                  {"parameters", static_cast<double>(parameter_count(o_.network.config()))}}});
}

// What would fail after hours fails now: the largest batch, a validation batch, the validator.
void Trainer::rehearse() {
  Parameters& p = o_.network.parameters();
  if (o_.source.largest) {
    const TrainingBatch batch = o_.source.largest();
    largest_activations_ = static_cast<int64_t>(runner_.training_bytes(batch));
    p.begin_step();
    runner_.train(batch, count_labels(batch), {.seed = state_.seed});
  }
  if (validates()) {
    Cursor cursor;
    std::map<std::string, double> values =
        metrics_of(runner_.evaluate(o_.source.validation(cursor)));
    rehearsed_loss_ = values.at("loss");
    if (writes()) {
      if (o_.validator) values.merge(rehearse_decoding());
      chosen_metric(values);  // throws when there is none
    }
  }
  // Values, kept gradients, and the optimizer's; what a batch takes beside them.
  const int64_t weights = bytes_per_weight(o_.optimizer, p.gradient_memory()) * p.count();
  const int64_t teacher =
      o_.teacher ? static_cast<int64_t>(o_.teacher->parameters().all_values().size_bytes()) : 0;
  result_.planned_bytes = weights + teacher + largest_activations_;
  note("memory: " + megabytes(weights + teacher) + " for the weights and their slots, " +
       megabytes(largest_activations_) + " for the largest batch");
}

std::map<std::string, double> Trainer::rehearse_decoding() {
  constexpr size_t kFewExamples = 4;
  const std::string folder = checkpoints_.begin(o_.network, state_.step, o_.save_beside_model);
  try {
    const ValidationScores scores = decode(folder, kFewExamples);
    checkpoints_.abandon(state_.step);
    return scores.metrics;
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

void Trainer::check_loss(const std::string& name, double loss, double usual) const {
  if (!std::isfinite(loss)) diverged(name + " is " + significant(loss));
  if (loss > kExplodedFactor * usual + kExplodedOffset) {
    diverged(name + " is " + significant(loss) + ", at first it was " + significant(usual));
  }
}

// A step's loss is that of the weights before its update. Whether the update was a good one shows
// in the next batch, which costs one forward pass.
void Trainer::check_weights() {
  for (const float value : o_.network.parameters().all_values()) {
    if (!std::isfinite(value)) diverged("a weight is " + significant(value));
  }
  Cursor next = state_.cursor;
  StepLoss loss = runner_.evaluate(o_.source.next(next)).loss;
  share_loss(loss);
  check_loss("the loss after it", loss.loss(), state_.first_loss);
}

// Means are taken over what all ranks have, so the sum of their gradients is the gradient.
void Trainer::agree(LabelCounts& counts, int64_t& tokens) {
  if (ranks_.alone()) return;
  std::array numbers{static_cast<double>(counts.labels), static_cast<double>(counts.sequences),
                     static_cast<double>(counts.rows), static_cast<double>(tokens),
                     stop_requested() ? 1.0 : 0.0};
  ranks_.sum(numbers);
  counts.labels = static_cast<int64_t>(numbers[0]);
  counts.sequences = static_cast<int64_t>(numbers[1]);
  counts.rows = static_cast<int64_t>(numbers[2]);
  tokens = static_cast<int64_t>(numbers[3]);
  stop_agreed_ = numbers[4] > 0;
}

void Trainer::share_loss(StepLoss& loss) {
  if (ranks_.alone()) return;
  // Which losses there are is a batch's own business, and a rank may have had none.
  struct Sums {
    double sum, count, weight, ranks;
  };
  std::array<Sums, kLossKinds> all{};
  for (const LossPart& part : loss.parts) {
    all[static_cast<size_t>(part.kind)] = {part.sum, static_cast<double>(part.count), part.weight,
                                           1};
  }
  ranks_.sum(std::span(&all[0].sum, sizeof all / sizeof(double)));
  loss.parts.clear();
  for (size_t kind = 0; kind < all.size(); ++kind) {
    const Sums& s = all[kind];
    if (s.ranks == 0) continue;
    loss.parts.push_back(
        {static_cast<LossKind>(kind), s.weight / s.ranks, s.sum, static_cast<int64_t>(s.count)});
  }
}

void Trainer::share(Evaluation& e) {
  share_loss(e.loss);
  e.correct = ranks_.sum(e.correct), e.judged = ranks_.sum(e.judged);
  for (double* number : {&e.n, &e.x, &e.y, &e.xx, &e.yy, &e.xy}) {
    ranks_.sum(std::span(number, 1));
  }
}

void Trainer::step() {
  const Clock::time_point start = Clock::now();
  Parameters& p = o_.network.parameters();
  std::vector<TrainingBatch> batches;
  LabelCounts counts;
  int64_t tokens = 0;
  for (int part = ranks_.rank(); part < o_.train.accumulate; part += ranks_.size()) {
    batches.push_back(o_.source.next(state_.cursor));
    counts += count_labels(batches.back());
    tokens += batches.back().rows();
  }
  agree(counts, tokens);
  ++state_.step;
  p.begin_step();
  // Weights that are updated in backward are those of a step that may yet be found to diverge.
  // That ends the training, and nothing of it is written.
  const double rate = schedule_.learning_rate(state_.step);
  if (pools_gradients()) optimizer_.begin_update(o_.pool, rate);
  StepLoss loss;
  for (size_t i = 0; i < batches.size(); ++i) {
    // Numbered as if one process had them all: dropout is the same.
    const int part = static_cast<int>(i) * ranks_.size() + ranks_.rank();
    const bool last = i + 1 == batches.size();
    GradientOutlet outlet;
    if (last && !ranks_.alone()) outlet.exchange = &*exchange_;
    if (pools_gradients()) {
      outlet.use = [this](size_t weight) { optimizer_.update_weight(o_.pool, weight); };
    }
    loss += runner_.train(batches[i], counts,
                          {.seed = state_.seed, .step = state_.step, .part = part}, outlet);
  }
  double norm = 0;
  if (pools_gradients()) {
    norm = optimizer_.finish_update(o_.pool);
  } else {
    if (!ranks_.alone()) {
      exchange_->finish();
      ranks_.finish_sums();
    }
    p.finish_gradients();
    norm = optimizer_.gradient_norm(o_.pool);
  }
  share_loss(loss);
  last_loss_ = loss.loss();
  if (state_.first_loss == 0) state_.first_loss = last_loss_;
  check_loss("the loss", last_loss_, state_.first_loss);
  if (!std::isfinite(norm)) diverged("the gradient's norm is " + significant(norm));
  if (!pools_gradients()) optimizer_.update(o_.pool, rate, optimizer_.clip_factor(norm));

  const double seconds = seconds_since(start);
  state_.tokens += tokens;
  state_.seconds += seconds;
  state_.interval_loss += last_loss_;
  ++state_.interval_steps;
  interval_tokens_ += tokens;
  interval_seconds_ += seconds;
  const double step_rate = 1 / std::max(seconds, 1e-9);
  recent_rate_ =
      recent_rate_ == 0 ? step_rate : (1 - kRateShare) * recent_rate_ + kRateShare * step_rate;
  if (o_.progress && writes()) {
    o_.progress(
        {.step = state_.step,
         .steps = o_.train.steps,
         .loss = last_loss_,
         .learning_rate = rate,
         .gradient_norm = norm,
         .tokens_per_second = static_cast<double>(interval_tokens_) / interval_seconds_,
         .remaining_seconds = static_cast<double>(o_.train.steps - state_.step) / recent_rate_,
         .epoch = state_.cursor.epoch});
  }
  if (state_.step % o_.train.log_every == 0 || state_.step == o_.train.steps) log_step(rate, norm);
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
  if (!ranks_.alone()) {  // the share of the time that the exchange could not hide
    const double waiting = ranks_.waiting_seconds() - interval_waiting_;
    record.values.emplace_back("waiting", waiting / std::max(interval_seconds_, 1e-9));
    interval_waiting_ = ranks_.waiting_seconds();
  }
  if (log_) log_->add(record);
  state_.interval_loss = 0, state_.interval_steps = 0;
  interval_tokens_ = 0, interval_seconds_ = 0;
}

std::map<std::string, double> Trainer::metrics_of(const Evaluation& total) {
  std::map<std::string, double> values{{"loss", total.loss.loss()}};
  for (const LossPart& part : total.loss.parts) {
    if (part.kind != LossKind::labels) continue;
    values["perplexity"] = std::exp(std::min(part.mean(), kMostNats));
  }
  if (const auto accuracy = total.accuracy()) values["accuracy"] = *accuracy;
  if (const auto pearson = total.pearson()) values["pearson"] = *pearson;
  return values;
}

std::map<std::string, double> Trainer::evaluate() {
  Evaluation total;
  Cursor cursor;
  for (int64_t n = 0; cursor.epoch == 0 && (o_.validate.batches == 0 || n < o_.validate.batches);
       ++n) {
    // Several ranks evaluate together, to the end.
    if (ranks_.alone() && stop_requested()) {
      throw Error(ErrorCode::cancelled, "validation was stopped");
    }
    const TrainingBatch batch = o_.source.validation(cursor);
    if (n % ranks_.size() == ranks_.rank()) total += runner_.evaluate(batch);
  }
  share(total);
  return metrics_of(total);
}

ValidationScores Trainer::decode(const std::string& model_folder, size_t most_examples,
                                 const std::atomic<bool>* stop) {
  if (!o_.validator || !writes()) return {};
  runner_.release_memory();  // what decodes comes in its place
  ValidationRequest request = o_.request;
  request.model = model_folder;
  request.examples = request.examples.first(std::min(request.examples.size(), most_examples));
  request.stop = stop;
  return o_.validator(request);
}

std::optional<std::map<std::string, double>> Trainer::all_metrics(
    const std::string& model_folder, std::vector<std::string>& samples,
    const std::function<void(double loss)>& before_decoding) {
  try {
    std::map<std::string, double> values = evaluate();
    if (before_decoding) before_decoding(values.at("loss"));
    ValidationScores scores = decode(model_folder, o_.request.examples.size(), o_.stop);
    // Both may know the accuracy: what decoding says is what users of the model will see.
    for (const auto& [key, value] : scores.metrics) values[key] = value;
    samples = std::move(scores.samples);
    return values;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || !stop_requested()) throw;
    return std::nullopt;
  }
}

double Trainer::chosen_metric(const std::map<std::string, double>& values) const {
  const auto chosen = values.find(o_.validate.metric);
  if (chosen != values.end()) return chosen->second;
  std::string names;
  for (const auto& [key, value] : values) names += (names.empty() ? "" : ", ") + key;
  throw Error(ErrorCode::invalid_argument,
              "validate.metric is " + o_.validate.metric + ", this training has " + names,
              "choose one of those");
}

bool Trainer::judge(const std::string& model_folder) {
  LogRecord record{.kind = "validate", .step = state_.step};
  std::optional<std::map<std::string, double>> metrics =
      all_metrics(model_folder, record.samples, [this](double loss) {
        check_loss("the validation loss", loss, std::max(state_.first_loss, rehearsed_loss_));
      });
  if (!metrics) return false;
  if (!writes()) return true;  // the first rank will tell
  std::map<std::string, double>& values = *metrics;
  const double metric = chosen_metric(values);
  state_.metric = metric;
  const bool better =
      std::isfinite(metric) &&
      (!state_.best_metric || (lower_is_better(o_.validate.metric) ? metric < *state_.best_metric
                                                                   : metric > *state_.best_metric));
  if (better) {
    state_.best_metric = metric, state_.best_step = state_.step, state_.without_better = 0;
  } else {
    ++state_.without_better;
  }
  std::string text = "step " + std::to_string(state_.step) + ": validation";
  for (const auto& [key, value] : values) {
    record.values.emplace_back(key, value);
    text += " " + key + " " + significant(value);
  }
  note(text + (better ? " (best)" : ""));
  for (const std::string& sample : record.samples) note("  " + sample);
  log_->add(record);
  result_.validation = std::move(values);
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
    if (validating && !judge(folder)) state_.scheduled = false;
  } catch (...) {
    if (optimizer_.has_average()) optimizer_.swap_average();
    if (writes()) checkpoints_.abandon(state_.step);
    throw;
  }
  if (optimizer_.has_average()) optimizer_.swap_average();
  if (writes()) commit();
  share_weights();
  share_state();
  if (!unjudged()) return;
  stop_agreed_ = true;
  note("stopped while step " + std::to_string(state_.step) +
       " was validated; run the same again to go on");
}

void Trainer::commit() {
  state_.settings = settings_json();
  checkpoints_.commit(o_.network, optimizer_, state_);
  saved_step_ = state_.step;
  const bool averages_last = o_.train.average == Averaging::last;
  const bool averages_best = o_.train.average == Averaging::best;
  checkpoints_.prune(
      {.last = std::max(o_.train.keep_last, averages_last ? o_.train.average_count : 0),
       .best = std::max(o_.train.keep_best, averages_best ? o_.train.average_count : 0),
       .lower_is_better = lower_is_better(o_.validate.metric)});
  write_report();
}

// The model that is left in OUT: an average, the best, or the last. Returns of which steps.
std::vector<int64_t> Trainer::write_final_model() {
  std::vector<Checkpoint> chosen = checkpoints_.list();
  const std::vector<Checkpoint> all = chosen;
  std::erase_if(chosen, [&](const Checkpoint& c) {
    return !c.state.scheduled && c.state.step != all.back().state.step;
  });
  const auto count =
      static_cast<size_t>(o_.train.average == Averaging::none ? 1 : o_.train.average_count);
  const bool lower = lower_is_better(o_.validate.metric);
  if (o_.train.average == Averaging::last) {
    if (chosen.size() > count)
      chosen.erase(chosen.begin(), chosen.end() - static_cast<int64_t>(count));
  } else {
    chosen = Checkpoints::best(chosen, count, lower);
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
  runner_.release_memory();  // the checkpoints come in its place
  std::vector<int64_t> chosen;
  if (writes()) chosen = write_final_model();
  ranks_.broadcast(o_.network.parameters().all_values());
  std::string steps;
  for (const int64_t step : chosen) steps += (steps.empty() ? "" : ", ") + std::to_string(step);
  LogRecord record{.kind = "end", .step = state_.step, .text = "steps " + steps};
  if (validates()) {
    auto metrics = all_metrics(o_.folder, record.samples);
    if (!metrics) {
      note("stopped while the final model was validated; run the same again to go on");
      return false;
    }
    result_.validation = std::move(*metrics);
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
  const std::string html = report_html({.settings = o_.settings,
                                        .history = log_->history(),
                                        .steps = o_.train.steps,
                                        .metric = o_.validate.metric,
                                        .planned_bytes = result_.planned_bytes,
                                        .peak_rss_bytes = peak_rss_bytes(),
                                        .parameters = parameter_count(o_.network.config())});
  AtomicFile file(o_.folder + "/report.html");
  file.write(html);
  file.commit();
}

TrainResult Trainer::run() {
  resume();
  if (!done()) rehearse();
  while (!done() && !stopping()) {
    if (!unjudged()) step();
    const bool last = state_.step >= o_.train.steps;
    const bool saving = last || state_.step % o_.train.checkpoint_every == 0;
    if (validation_due() || saving) save(validation_due());
  }
  result_.finished = done();
  if (!result_.finished && saved_step_ != state_.step && state_.step > 0) {
    save(/*validating=*/false, /*scheduled=*/false);
    note("stopped at step " + std::to_string(state_.step) + "; run the same again to go on");
  }
  if (result_.finished) {
    if (state_.step < o_.train.steps) {
      note("no better " + o_.validate.metric + " since step " + std::to_string(state_.best_step) +
           ": stopping early");
    }
    result_.finished = finish();
    if (writes()) write_report();
  }
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
  return result_;
}

}  // namespace heed
