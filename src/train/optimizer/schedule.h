// The learning rate of each step.
//
//   Schedule schedule({.kind = ScheduleKind::cosine, .warmup_steps = 100, .steps = 2000}, 1e-3, 128);
//   schedule.learning_rate(1);   // steps count from 1
//
// A pure function of the step, so checkpoints need not store it.
#pragma once

#include <array>
#include <cstdint>

#include "heed/enum_names.h"

namespace heed {

enum class ScheduleKind { constant, noam, inverse_sqrt, linear, cosine };

template <>
inline constexpr std::array kEnumNames<ScheduleKind>{
    EnumName<ScheduleKind>{ScheduleKind::constant, "constant"},
    EnumName<ScheduleKind>{ScheduleKind::noam, "noam"},
    EnumName<ScheduleKind>{ScheduleKind::inverse_sqrt, "inverse_sqrt"},
    EnumName<ScheduleKind>{ScheduleKind::linear, "linear"},
    EnumName<ScheduleKind>{ScheduleKind::cosine, "cosine"}};

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::inverse_sqrt;
  int64_t warmup_steps = 0;
  int64_t steps = 0;                // end of the linear or cosine decay; 0: the last step
  double final_learning_rate = 0;   // at the end of that decay
  double warmup_learning_rate = 0;  // at the start of the warm-up

  bool operator==(const ScheduleOptions&) const = default;
};

class Schedule {
 public:
  // `peak` is the rate after the warm-up; for noam, a factor of the paper's formula, which depends
  // on the model's width.
  Schedule(const ScheduleOptions& options, double peak, int64_t width);

  double learning_rate(int64_t step) const;  // step = 1, 2, …

 private:
  ScheduleOptions options_;
  double peak_, width_factor_;
};

}  // namespace heed
