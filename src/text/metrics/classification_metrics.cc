#include <cmath>
#include <map>

#include "heed/error.h"
#include "heed/metrics.h"
#include "text/metrics/f1.h"

namespace heed {
namespace {

// Gorodkin (2004), "Comparing two K-category assignments by a K-category correlation coefficient".
double matthews(const ClassificationScore& score, int64_t correct) {
  const auto items = static_cast<double>(score.items);
  double both = static_cast<double>(correct) * items;
  double gold = items * items, predicted = items * items;
  for (const LabelScore& label : score.labels) {
    const auto g = static_cast<double>(label.gold), p = static_cast<double>(label.predicted);
    both -= g * p;
    gold -= g * g;
    predicted -= p * p;
  }
  return gold * predicted == 0 ? 0 : both / std::sqrt(gold * predicted);
}

}  // namespace

ClassificationScore classification(const std::vector<std::string>& gold,
                                   const std::vector<std::string>& predicted) {
  if (gold.size() != predicted.size()) {
    throw Error(ErrorCode::invalid_argument,
                "classification: must have as many predictions as gold labels, got " +
                    std::to_string(predicted.size()) + " and " + std::to_string(gold.size()));
  }
  if (gold.empty())
    throw Error(ErrorCode::invalid_argument,
                "classification: must have labels to compare, got none");

  std::map<std::string, LabelScore> labels;
  int64_t correct = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    ++labels[gold[i]].gold;
    ++labels[predicted[i]].predicted;
    if (gold[i] == predicted[i]) {
      ++labels[gold[i]].correct;
      ++correct;
    }
  }

  ClassificationScore result{.items = static_cast<int64_t>(gold.size())};
  for (auto& [name, label] : labels) {
    label.label = name;
    fill_f1(label, 1);
    const double share = static_cast<double>(label.gold) / static_cast<double>(result.items);
    result.macro.precision += label.precision / static_cast<double>(labels.size());
    result.macro.recall += label.recall / static_cast<double>(labels.size());
    result.macro.f1 += label.f1 / static_cast<double>(labels.size());
    result.weighted.precision += label.precision * share;
    result.weighted.recall += label.recall * share;
    result.weighted.f1 += label.f1 * share;
    result.labels.push_back(label);
  }
  // With one label per item, each error is one false positive and one false negative: the micro
  // averages equal the accuracy.
  result.accuracy = static_cast<double>(correct) / static_cast<double>(result.items);
  result.micro = {result.accuracy, result.accuracy, result.accuracy};
  result.matthews = matthews(result, correct);
  return result;
}

Perplexity perplexity(std::span<const double> log_probabilities) {
  if (log_probabilities.empty()) {
    throw Error(ErrorCode::invalid_argument, "perplexity: must have log-probabilities, got none");
  }
  double sum = 0;
  for (const double value : log_probabilities) {
    if (std::isnan(value) || value > 0) {
      throw Error(ErrorCode::invalid_argument,
                  "perplexity: log-probabilities must be 0 or less, got " + std::to_string(value));
    }
    sum += value;
  }
  const double cross_entropy = -sum / static_cast<double>(log_probabilities.size());
  return {.perplexity = std::exp(cross_entropy),
          .cross_entropy = cross_entropy,
          .tokens = static_cast<int64_t>(log_probabilities.size())};
}

}  // namespace heed
