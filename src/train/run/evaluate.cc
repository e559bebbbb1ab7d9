#include "train/run/evaluate.h"

#include <algorithm>
#include <cmath>

#include "heed/error.h"
#include "train/run/rank_sums.h"

namespace heed {
namespace {

// Perplexities above exp(this) are reported as exp(this).
constexpr double kMostNats = 50;
// Examples of a dry run.
constexpr size_t kFewExamples = 4;

}  // namespace

bool lower_is_better(std::string_view metric) { return metric == "loss" || metric == "perplexity"; }

Metrics metrics_of(const Evaluation& evaluation) {
  Metrics metrics{{"loss", evaluation.loss.loss()}};
  for (const LossPart& part : evaluation.loss.parts) {
    if (part.kind != LossKind::labels) continue;
    metrics["perplexity"] = std::exp(std::min(part.mean(), kMostNats));
  }
  if (const auto accuracy = evaluation.accuracy()) metrics["accuracy"] = *accuracy;
  if (const auto pearson = evaluation.pearson()) metrics["pearson"] = *pearson;
  return metrics;
}

Evaluator::Evaluator(ValidationOptions options, StepRunner& runner, BatchSource& batches,
                     Ranks& ranks, const std::atomic<bool>* stop)
    : o_(std::move(options)), runner_(runner), batches_(batches), ranks_(ranks), stop_(stop) {}

Metrics Evaluator::evaluate_first_batch() {
  Cursor cursor;
  return metrics_of(runner_.evaluate(batches_.next_validation(cursor)));
}

Metrics Evaluator::decode_few(const std::string& model_folder) {
  return decode(model_folder, kFewExamples, nullptr).metrics;
}

Metrics Evaluator::evaluate_batches() {
  const int64_t most = o_.section.batches;
  Evaluation total;
  Cursor cursor;
  for (int64_t n = 0; cursor.epoch == 0 && (most == 0 || n < most); ++n) {
    // Several ranks must all reach the sums below.
    if (ranks_.alone() && stop_requested()) {
      throw Error(ErrorCode::cancelled, "validation was stopped");
    }
    const TrainingBatch batch = batches_.next_validation(cursor);
    if (n % ranks_.size() == ranks_.rank()) total += runner_.evaluate(batch);
  }
  sum_over_ranks(ranks_, total);
  return metrics_of(total);
}

ValidationScores Evaluator::decode(const std::string& model_folder, size_t most_examples,
                                   const std::atomic<bool>* stop) {
  if (!decodes() || !ranks_.first()) return {};
  runner_.release_memory();  // decoding needs it
  ValidationRequest request = o_.request;
  request.model = model_folder;
  request.examples = request.examples.first(std::min(request.examples.size(), most_examples));
  request.stop = stop;
  return o_.validator(request);
}

std::optional<Evaluator::Result> Evaluator::evaluate(
    const std::string& model_folder, const std::function<void(double loss)>& check_loss) {
  try {
    Result result;
    result.metrics = evaluate_batches();
    if (check_loss) check_loss(result.metrics.at("loss"));
    ValidationScores scores = decode(model_folder, o_.request.examples.size(), stop_);
    // Where both give an accuracy, the decoded one counts: users of the model see that one.
    for (const auto& [key, value] : scores.metrics) result.metrics[key] = value;
    result.samples = std::move(scores.samples);
    return result;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || !stop_requested()) throw;
    return std::nullopt;
  }
}

double Evaluator::chosen_metric(const Metrics& metrics) const {
  const auto chosen = metrics.find(o_.section.metric);
  if (chosen != metrics.end()) return chosen->second;
  std::string names;
  for (const auto& [key, value] : metrics) names += (names.empty() ? "" : ", ") + key;
  throw Error(ErrorCode::invalid_argument,
              "validate.metric must be one of " + names + ", got " + o_.section.metric,
              "these are the metrics of this objective and its data");
}

}  // namespace heed
