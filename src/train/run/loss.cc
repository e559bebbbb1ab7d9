#include "train/run/loss.h"

#include <algorithm>
#include <cmath>

#include "base/ignore_label.h"

namespace heed {

bool has_dropout(const ModelConfig& config) {
  return std::max({config.dropout, config.embedding_dropout, config.attention_dropout,
                   config.activation_dropout}) > 0;
}

bool predicts_tokens(const ModelConfig& config) {
  return config.head == Head::language_model || config.head == Head::masked_lm;
}

LabelCounts& LabelCounts::operator+=(const LabelCounts& other) {
  labels += other.labels, sequences += other.sequences, rows += other.rows;
  return *this;
}

int64_t count_labels(std::span<const int32_t> labels) {
  return std::ranges::count_if(labels, [](int32_t label) { return label != kIgnoreLabel; });
}

LabelCounts count_labels(const TrainingBatch& batch) {
  LabelCounts counts;
  counts.labels = count_labels(batch.labels);
  counts.sequences = !batch.scores.empty()          ? static_cast<int64_t>(batch.scores.size())
                     : !batch.next_sentence.empty() ? count_labels(batch.next_sentence)
                                                    : count_labels(batch.sequence_labels);
  counts.rows = batch.target.empty() ? batch.input.rows() : batch.target.rows();
  return counts;
}

double StepLoss::loss() const {
  double total = 0;
  for (const LossPart& part : parts) total += part.weight * part.mean();
  return total;
}

StepLoss& StepLoss::operator+=(const StepLoss& other) {
  for (const LossPart& part : other.parts) {
    const auto mine = std::ranges::find(parts, part.kind, &LossPart::kind);
    if (mine == parts.end()) {
      parts.push_back(part);
    } else {
      mine->sum += part.sum, mine->count += part.count;
    }
  }
  return *this;
}

Evaluation& Evaluation::operator+=(const Evaluation& e) {
  loss += e.loss;
  correct += e.correct, evaluated += e.evaluated;
  n += e.n, x += e.x, y += e.y, xx += e.xx, yy += e.yy, xy += e.xy;
  return *this;
}

std::optional<double> Evaluation::accuracy() const {
  if (evaluated == 0) return std::nullopt;
  return static_cast<double>(correct) / static_cast<double>(evaluated);
}

std::optional<double> Evaluation::pearson() const {
  const double vx = n * xx - x * x, vy = n * yy - y * y;
  if (n < 2 || vx <= 0 || vy <= 0) return std::nullopt;
  return (n * xy - x * y) / std::sqrt(vx * vy);
}

}  // namespace heed
