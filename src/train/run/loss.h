// What a training step minimizes, as values: options, label counts, and the losses of a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/batches/batch.h"
#include "model/config.h"

namespace heed {

// Most batches of one step: the dropout streams are numbered for no more (step.cc).
inline constexpr int kMostBatches = 1 << 12;

struct LossOptions {
  float label_smoothing = 0;
  // R-Drop (Wu et al. 2021), their α: each sequence runs twice with different dropout masks, and the
  // loss is (cross-entropy of both + α · symmetric KL divergence of the two outputs) / 2.
  float r_drop = 0;
  // Distillation (Sanh et al. 2019, DistilBERT): the softmax temperature and the weights of the
  // losses.
  float temperature = 2;
  float soft_weight = 5;    // KL divergence from the teacher's output distribution
  float label_weight = 2;   // cross-entropy of the labels
  float cosine_weight = 1;  // cosine distance of the last hidden states

  bool operator==(const LossOptions&) const = default;
};

// Whether any dropout is above 0. Without dropout, R-Drop has no effect.
bool has_dropout(const ModelConfig& config);

// Whether the head predicts tokens of the vocabulary.
bool predicts_tokens(const ModelConfig& config);

// The denominators of the means.
struct LabelCounts {
  int64_t labels = 0;     // rows with a label
  int64_t sequences = 0;  // sequences with a class, a score or a next-sentence label
  int64_t rows = 0;       // output rows, with or without a label

  LabelCounts& operator+=(const LabelCounts& other);
};
LabelCounts count_labels(const TrainingBatch& batch);
// Labels that are not kIgnoreLabel.
int64_t count_labels(std::span<const int32_t> labels);

enum class LossKind { labels, classes, scores, next_sentence, soft_targets, cosine, r_drop };
inline constexpr size_t kLossKinds = 7;

struct LossPart {
  LossKind kind = LossKind::labels;
  double weight = 1;
  double sum = 0;
  int64_t count = 0;

  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

// Sums over a batch, or over several.
struct StepLoss {
  std::vector<LossPart> parts;

  double loss() const;  // the weighted sum of the parts' means
  StepLoss& operator+=(const StepLoss& other);
};

// Teacher-forced evaluation: each prediction is conditioned on the reference tokens before it.
struct Evaluation {
  StepLoss loss;
  int64_t correct = 0, evaluated = 0;  // labels
  // Regression: sums over the predictions x, the references y, and their products.
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  Evaluation& operator+=(const Evaluation& other);
  std::optional<double> accuracy() const;
  std::optional<double> pearson() const;
};

}  // namespace heed
