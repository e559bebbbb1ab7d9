#include "infer/search/hypotheses.h"

#include <algorithm>
#include <cmath>

namespace heed {

double penalised(double sum, int64_t length, const SearchOptions& options) {
  const auto n = static_cast<double>(length);
  const double base = options.length_penalty_rule == LengthPenaltyRule::gnmt ? (5 + n) / 6 : n;
  return sum / std::pow(base, options.length_penalty);
}

double Hypotheses::worst_score() const {
  return std::ranges::min_element(list_, {}, &Hypothesis::score)->score;
}

bool Hypotheses::would_keep(double sum, int64_t new_tokens) const {
  return !is_full() || penalised(sum, new_tokens, options_) > worst_score();
}

void Hypotheses::add(Hypothesis hypothesis, int64_t new_tokens) {
  if (!would_keep(hypothesis.sum, new_tokens)) return;
  hypothesis.score = penalised(hypothesis.sum, new_tokens, options_);
  if (is_full()) list_.erase(std::ranges::min_element(list_, {}, &Hypothesis::score));
  list_.push_back(std::move(hypothesis));
}

bool Hypotheses::is_done(double best_sum, int64_t new_tokens) const {
  if (!is_full()) return false;
  if (options_.early_stopping == EarlyStopping::yes) return true;
  // With a penalty above 0 the score grows with length, so that the longest could still win.
  const bool longest =
      options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
  const double attainable = penalised(best_sum, longest ? max_new_tokens_ : new_tokens, options_);
  return worst_score() >= attainable;
}

std::vector<Hypothesis> Hypotheses::take_best(int n) && {
  std::ranges::stable_sort(list_, {}, &Hypothesis::score);
  std::ranges::reverse(list_);
  if (list_.size() > static_cast<size_t>(n)) list_.resize(static_cast<size_t>(n));
  return std::move(list_);
}

}  // namespace heed
