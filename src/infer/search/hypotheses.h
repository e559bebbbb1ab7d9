// The finished hypotheses of one beam search: the best `beam`, and whether the search is done.
//
// The rules of transformers' BeamHypotheses, so that the answers are the same.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/engine.h"
#include "heed/search.h"

namespace heed {

struct Hypothesis {
  std::vector<int32_t> ids;  // the prompt first
  float sum = 0;             // of the new tokens' log-probabilities
  double score = 0;          // after the length penalty
  FinishReason finish = FinishReason::end;
  std::vector<float> token_scores{};
};

// The sum of log-probabilities of `length` new tokens, after the penalty.
double penalised(double sum, int64_t length, const SearchOptions& options);

class Hypotheses {
 public:
  // Borrows the options.
  Hypotheses(const SearchOptions& options, int64_t max_new_tokens)
      : options_(options), max_new_tokens_(max_new_tokens) {}

  // Whether a hypothesis with this sum and `new_tokens` would be among the best.
  bool would_keep(double sum, int64_t new_tokens) const;
  // Kept if it is among the best.
  void add(Hypothesis hypothesis, int64_t new_tokens);
  bool is_full() const { return list_.size() >= static_cast<size_t>(options_.beam); }
  // Whether no live sequence can enter: the best of them has this sum and `new_tokens`.
  bool is_done(double best_sum, int64_t new_tokens) const;

  const std::vector<Hypothesis>& list() const { return list_; }
  // The best n, best first; of equal ones the last finished first.
  std::vector<Hypothesis> take_best(int n) &&;

 private:
  double worst_score() const;  // of at least one

  const SearchOptions& options_;
  int64_t max_new_tokens_;
  std::vector<Hypothesis> list_;
};

}  // namespace heed
