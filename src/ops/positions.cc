#include "ops/positions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace heed {

std::vector<float> sinusoidal_table(int64_t positions, int64_t width, SinusoidLayout layout) {
  HEED_CHECK(width % 2 == 0, "sinusoidal_table: width must be even");
  std::vector<float> table(static_cast<size_t>(positions * width));
  const int64_t pairs = width / 2;
  const bool inclusive = layout == SinusoidLayout::half_inclusive;
  const auto steps = static_cast<double>(inclusive ? std::max<int64_t>(pairs - 1, 1) : pairs);
  for (int64_t i = 0; i < pairs; ++i) {
    const double frequency = std::pow(10000.0, -static_cast<double>(i) / steps);
    const int64_t sine = layout == SinusoidLayout::interleaved ? 2 * i : i;
    const int64_t cosine = layout == SinusoidLayout::interleaved ? 2 * i + 1 : pairs + i;
    for (int64_t p = 0; p < positions; ++p) {
      const double angle = static_cast<double>(p) * frequency;
      table[static_cast<size_t>(p * width + sine)] = static_cast<float>(std::sin(angle));
      table[static_cast<size_t>(p * width + cosine)] = static_cast<float>(std::cos(angle));
    }
  }
  return table;
}

int t5_bucket(int64_t key_minus_query, const T5Buckets& rule) {
  int buckets = rule.buckets, first = 0;
  int64_t distance = -key_minus_query;
  if (rule.bidirectional) {
    buckets /= 2;
    if (key_minus_query > 0) first = buckets;
    distance = std::abs(key_minus_query);
  } else {
    distance = std::max<int64_t>(distance, 0);
  }
  const int exact = buckets / 2;
  if (distance < exact) return first + static_cast<int>(distance);
  // In float, as the models were trained: the rounding decides at the powers.
  const float log_ratio =
      std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(rule.max_distance) / exact));
  const int bucket = exact + static_cast<int>(log_ratio * static_cast<float>(buckets - exact));
  return first + std::min(bucket, buckets - 1);
}

float alibi_slope(int head, int heads) {
  HEED_CHECK(head >= 0 && head < heads, "alibi_slope: head must be less than heads");
  const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(heads)));
  if (head < power) return static_cast<float>(std::exp2(-8.0 * (head + 1) / power));
  return static_cast<float>(std::exp2(-4.0 * (2 * (head - power) + 1) / power));
}

std::vector<float> rope_frequencies(int rotary_dim, double base) {
  HEED_CHECK(rotary_dim % 2 == 0, "rope_frequencies: rotary_dim must be even");
  std::vector<float> frequencies(static_cast<size_t>(rotary_dim / 2));
  for (int i = 0; i < rotary_dim / 2; ++i) {
    frequencies[static_cast<size_t>(i)] = static_cast<float>(std::pow(base, -2.0 * i / rotary_dim));
  }
  return frequencies;
}

namespace {

// Long waves are scaled, short ones kept, and those between are blended.
void scale_llama3(const RopeFormula& r, std::vector<float>& frequencies) {
  const auto length = static_cast<float>(r.original_positions);
  const float longest = length / r.low_frequency_factor;
  const float shortest = length / r.high_frequency_factor;
  for (float& f : frequencies) {
    const float wave = 2 * std::numbers::pi_v<float> / f;
    if (wave > longest) {
      f /= r.factor;
    } else if (wave > shortest) {
      const float blend = (length / wave - r.low_frequency_factor) /
                          (r.high_frequency_factor - r.low_frequency_factor);
      f = (1 - blend) * f / r.factor + blend * f;
    }
  }
}

// The column pair, as a real number, that makes this many rotations in original_positions.
double pair_with_rotations(const RopeFormula& r, double rotations) {
  const double wave = static_cast<double>(r.original_positions) / rotations;
  return r.rotary_dim * std::log(wave / (2 * std::numbers::pi)) / (2 * std::log(r.base));
}

void scale_yarn(const RopeFormula& r, RopeAngles& angles) {
  // Whole columns, as the published models were trained (Hugging Face: truncate).
  const double low = std::max(std::floor(pair_with_rotations(r, kYarnFast)), 0.0);
  double high = std::min(std::ceil(pair_with_rotations(r, kYarnSlow)), r.rotary_dim - 1.0);
  if (high == low) high += 0.001;
  for (size_t i = 0; i < angles.frequencies.size(); ++i) {
    const double blend = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double f = angles.frequencies[i];
    angles.frequencies[i] = static_cast<float>((1 - blend) * f + blend * f / r.factor);
  }
  if (r.factor > 1) angles.magnitude = 0.1f * std::log(r.factor) + 1;
}

}  // namespace

RopeAngles rope_angles(const RopeFormula& formula) {
  RopeAngles angles{rope_frequencies(formula.rotary_dim, formula.base)};
  switch (formula.scaling) {
    case RopeScaling::none:
      break;
    case RopeScaling::linear:
      for (float& f : angles.frequencies) f /= formula.factor;
      break;
    case RopeScaling::llama3:
      scale_llama3(formula, angles.frequencies);
      break;
    case RopeScaling::yarn:
      scale_yarn(formula, angles);
      break;
  }
  return angles;
}

}  // namespace heed
