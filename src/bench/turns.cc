#include "bench/turns.h"

#include <algorithm>

#include "base/check.h"
#include "bench/preset_bench.h"

namespace heed::bench {

void PairedShares::add(std::vector<double> batch_seconds, std::vector<double> limit_speeds) {
  seconds_.push_back(percentile(batch_seconds, 50));
  limits_.push_back(percentile(limit_speeds, 50));
  best_limit_ = std::max(best_limit_, limit_speeds.back());
}

double PairedShares::share(double work) const {
  std::vector<double> shares;
  for (size_t turn = 0; turn < seconds_.size(); ++turn) {
    const double before = limits_[turn > 0 ? turn - 1 : 0], after = limits_[turn];
    shares.push_back(work / seconds_[turn] / 1e9 / ((before + after) / 2));
  }
  return percentile(shares, 50);
}

double PairedShares::best_limit() const {
  HEED_CHECK(!limits_.empty(), "a limit that was never measured");
  return best_limit_;
}

}  // namespace heed::bench
