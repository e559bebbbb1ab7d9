// Batches and the machine's limits, measured alternately.
//
// The speed of a shared machine can change by half within seconds, so a limit measured once says
// little about a batch measured at another time. Both are measured repeatedly: a turn of batches,
// then a sample of the limits. A share is the median over the turns; within a turn it uses the
// median of batches and of the limit, because the best of many short passes would find a quiet
// moment that no long batch finds.
#pragma once

#include <vector>

#include "bench/row.h"

namespace heed::bench {

class PairedShares {
 public:
  // Seconds of the batches of one turn, and the limit's speeds after it. Neither is empty.
  void add(std::vector<double> batch_seconds, std::vector<double> limit_speeds);

  // The share of the limit that batches of `work` reach (operations or bytes; the limit is in 1e9 of
  // them per second): the median over the turns.
  double share(double work) const;
  double best_limit() const;

 private:
  std::vector<double> seconds_, limits_;  // the medians of each turn
  double best_limit_ = 0;
};

// Number of turns: five, or three where not even one batch fits into a fifth of the time.
inline int turns_for(double seconds, double batch_seconds) {
  constexpr int kTurns = 5, kFewTurns = 3;
  return batch_seconds * kTurns <= seconds ? kTurns : kFewTurns;
}

// Calls run(), one batch, for about `seconds` in total, and after_turn(seconds) after each turn with
// the time for each limit. `batch_seconds` is the time of a batch that ran before.
template <class Run, class AfterTurn>
void in_turns(double seconds, double batch_seconds, const Run& run, const AfterTurn& after_turn) {
  constexpr double kLimitsPart = 0.1;  // of the time that batches have
  const int turns = turns_for(seconds, batch_seconds);
  for (int turn = 0; turn < turns; ++turn) {
    const Clock::time_point start = Clock::now();
    do {
      run();
    } while (seconds_since(start) < seconds / turns);
    after_turn(kLimitsPart * seconds / turns);
  }
}

}  // namespace heed::bench
