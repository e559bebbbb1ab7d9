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
      case RopeScaling::yarn: {
        // Peng et al. 2023, §3.2, with the pairs at the two limits rounded outwards.
        const auto pair = [&](double rotations) {
          return r.rotary_dim * std::log(length / (rotations * 2 * std::numbers::pi)) /
                 (2 * std::log(r.base));
        };
        const double first = std::max(std::floor(pair(32)), 0.0);
        const double last = std::min(std::ceil(pair(1)), r.rotary_dim - 1.0);
        const double ramp = i <= first ? 0 : i >= last ? 1 : (i - first) / (last - first);
        scaled = f / factor * ramp + f * (1 - ramp);
        reference.magnitude = 0.1 * std::log(factor) + 1;
        break;
      }
    }
    reference.frequencies.push_back(scaled);
  }
  return reference;
}

}  // namespace heed
