#include "train/run/rank_sums.h"

#include <array>
#include <span>

namespace heed {

void sum_over_ranks(Ranks& ranks, StepCounts& counts) {
  if (ranks.alone()) return;
  LabelCounts& labels = counts.labels;
  std::array<double, 5> numbers{};
  const std::array fields{&labels.labels, &labels.sequences, &labels.rows, &counts.tokens,
                          &counts.stops};
  for (size_t i = 0; i < fields.size(); ++i) numbers[i] = static_cast<double>(*fields[i]);
  ranks.sum(numbers);
  for (size_t i = 0; i < fields.size(); ++i) *fields[i] = static_cast<int64_t>(numbers[i]);
}

void sum_over_ranks(Ranks& ranks, StepLoss& loss) {
  if (ranks.alone()) return;
  struct Sums {
    double sum, count, weight, ranks;
  };
  std::array<Sums, kLossKinds> all{};
  for (const LossPart& part : loss.parts) {
    all[static_cast<size_t>(part.kind)] = {part.sum, static_cast<double>(part.count), part.weight,
                                           1};
  }
  ranks.sum(std::span(&all[0].sum, sizeof all / sizeof(double)));
  loss.parts.clear();
  for (size_t kind = 0; kind < all.size(); ++kind) {
    const Sums& s = all[kind];
    if (s.ranks == 0) continue;
    loss.parts.push_back(
        {static_cast<LossKind>(kind), s.weight / s.ranks, s.sum, static_cast<int64_t>(s.count)});
  }
}

void sum_over_ranks(Ranks& ranks, Evaluation& e) {
  sum_over_ranks(ranks, e.loss);
  e.correct = ranks.sum(e.correct), e.evaluated = ranks.sum(e.evaluated);
  for (double* number : {&e.n, &e.x, &e.y, &e.xx, &e.yy, &e.xy}) {
    ranks.sum(std::span(number, 1));
  }
}

}  // namespace heed
