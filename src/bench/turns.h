// Batches and the machine's limits, measured in turns.
//
// A machine that others use too moves by half its speed within seconds. A limit that is measured
// once, beside a batch that is measured at another time, then says little about the batch: so both
// are measured again and again, a turn of batches and a sample of the limits after each, and a
// share is the median over the turns. Within a turn it is the median too, of batches and of the
// limit alike: the best of many short passes would find a quiet moment that no long batch finds.
#pragma once

#include <vector>

#include "bench/row.h"

namespace heed::bench {

class PairedShares {
 public:
  // What the batches of one turn took, in seconds, and the limit's speeds after it. Neither is
  // empty.
  void add(std::vector<double> batch_seconds, std::vector<double> limit_speeds);

  // What batches of `work` (operations or bytes; the limit is in 1e9 of them a second) reach of the
  // limit before and after them: the median over the turns.
  double share(double work) const;
  double best_limit() const;

 private:
  std::vector<double> seconds_, limits_;  // the medians of each turn
  double best_limit_ = 0;
};

// How often batches and limits take turns: five times, three where not even one batch fits into a
// fifth of the time.
inline int turns_for(double seconds, double batch_seconds) {
  constexpr int kTurns = 5, kFewTurns = 3;
  return batch_seconds * kTurns <= seconds ? kTurns : kFewTurns;
}

// Calls run(), one batch, for about `seconds` in all, and after_turn(seconds) after each turn, with
// the time that it may take for each limit. One batch must have run before, which took
// `batch_seconds`.
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
