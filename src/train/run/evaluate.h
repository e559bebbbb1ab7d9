// Validation: losses on the validation batches, and metrics of decoded text from the validator.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/train.h"
#include "train/ranks/ranks.h"
#include "train/recipe/recipe.h"
#include "train/run/batch_source.h"
#include "train/run/step.h"

namespace heed {

using Metrics = std::map<std::string, double>;  // "loss", "accuracy", "bleu", …

// Whether a smaller value of a metric is better.
bool lower_is_better(std::string_view metric);

// loss, perplexity, accuracy and pearson, as far as they are defined.
Metrics metrics_of(const Evaluation& evaluation);

struct ValidationOptions {
  ValidateSection section{};    // of the recipe
  ValidationRequest request{};  // for the validator; `model` and `stop` are set for each call
  Validator validator{};
};

class Evaluator {
 public:
  // Borrows the runner, the batches and the ranks. `stop` may be null.
  Evaluator(ValidationOptions options, StepRunner& runner, BatchSource& batches, Ranks& ranks,
            const std::atomic<bool>* stop);

  bool enabled() const { return batches_.has_validation(); }
  bool decodes() const { return static_cast<bool>(o_.validator); }

  // Of the first validation batch: whether it runs at all, and from which loss training starts.
  Metrics evaluate_first_batch();
  // The validator's metrics of a few examples. First rank only.
  Metrics decode_few(const std::string& model_folder);

  struct Result {
    Metrics metrics;
    std::vector<std::string> samples;
  };
  // Losses and decoded metrics of the model, which is also in `model_folder`. `check_loss` is called
  // before anything is decoded, and may throw. Nothing if a stop was requested meanwhile.
  std::optional<Result> evaluate(const std::string& model_folder,
                                 const std::function<void(double loss)>& check_loss = {});

  // validate.metric. Throws invalid_argument if it is not one of them.
  double chosen_metric(const Metrics& metrics) const;

 private:
  bool stop_requested() const { return stop_ && stop_->load(); }
  Metrics evaluate_batches();
  ValidationScores decode(const std::string& model_folder, size_t most_examples,
                          const std::atomic<bool>* stop);

  ValidationOptions o_;
  StepRunner& runner_;
  BatchSource& batches_;
  Ranks& ranks_;
  const std::atomic<bool>* stop_;
};

}  // namespace heed
