// RoPE's formulas in double precision, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "ops/positions.h"

namespace heed {

struct RopeReference {
  std::vector<double> frequencies;
  double magnitude = 1;
};

inline RopeReference rope_reference(const RopeFormula& r) {
  RopeReference reference;
  for (int i = 0; i < r.rotary_dim / 2; ++i) {
    const double f = std::pow(r.base, -2.0 * i / r.rotary_dim), factor = r.factor;
    const auto length = static_cast<double>(r.original_positions);
    double scaled = f;
    switch (r.scaling) {
      case RopeScaling::none:
        break;
      case RopeScaling::linear:
        scaled = f / factor;
        break;
      case RopeScaling::llama3: {
        const double rotations = length * f / (2 * std::numbers::pi);
        const double low = r.low_frequency_factor, high = r.high_frequency_factor;
        const double kept = std::clamp((rotations - low) / (high - low), 0.0, 1.0);
        scaled = kept * f + (1 - kept) * f / factor;
        break;
      }
    }
    reference.frequencies.push_back(scaled);
  }
  return reference;
}

}  // namespace heed
