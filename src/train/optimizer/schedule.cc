#include "train/optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace heed {

Schedule::Schedule(const ScheduleOptions& options, double peak, int64_t width)
    : options_(options), peak_(peak), width_factor_(1 / std::sqrt(static_cast<double>(width))) {}

double Schedule::learning_rate(int64_t step) const {
  HEED_CHECK(step > 0, "steps count from 1");
  const auto t = static_cast<double>(step);
  const auto warmup = static_cast<double>(options_.warmup_steps);
  if (options_.kind == ScheduleKind::noam) {
    // Vaswani et al. 2017, eq. 3: d_model^-0.5 · min(step^-0.5, step · warmup^-1.5).
    const double rise = warmup > 0 ? t * std::pow(warmup, -1.5) : 1 / std::sqrt(t);
    return peak_ * width_factor_ * std::min(1 / std::sqrt(t), rise);
  }
  if (t < warmup) {
    return options_.warmup_learning_rate + (peak_ - options_.warmup_learning_rate) * t / warmup;
  }
  const double length = std::max(static_cast<double>(options_.steps) - warmup, 1.0);
  const double progress = std::clamp((t - warmup) / length, 0.0, 1.0);
  const double final = options_.final_learning_rate;
  switch (options_.kind) {
    case ScheduleKind::inverse_sqrt:
      return peak_ * std::sqrt(std::max(warmup, 1.0) / t);
    case ScheduleKind::linear:
      return peak_ + (final - peak_) * progress;
    case ScheduleKind::cosine:
      return final + (peak_ - final) * (1 + std::cos(std::numbers::pi * progress)) / 2;
    case ScheduleKind::constant:
    case ScheduleKind::noam:
      break;
  }
  return peak_;
}

}  // namespace heed
