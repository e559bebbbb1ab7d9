// The formulas of the position schemes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "heed/enum_names.h"

namespace heed {

// Sinusoids (Vaswani et al. 2017, §3.5): sin(position · ω_i) and cos(position · ω_i) with
// ω_i = 10000^(-2i / width), interleaved as the paper writes them, or all sines first (Marian).
// half_inclusive: sines first, and ω_i = 10000^(-i / (width / 2 - 1)), so that the last one is
// 1/10000 itself (tensor2tensor, fairseq).
enum class SinusoidLayout { interleaved, half, half_inclusive };
std::vector<float> sinusoidal_table(int64_t positions, int64_t width, SinusoidLayout layout);

// T5's buckets of key - query (Raffel et al. 2020): exact for small distances, logarithmic up to
// max_distance, one shared bucket beyond. `bidirectional` gives each direction half of them;
// otherwise keys after the query share bucket 0.
struct T5Buckets {
  int buckets = 32;
  int max_distance = 128;
  bool bidirectional = true;
};
int t5_bucket(int64_t key_minus_query, const T5Buckets& rule);

// ALiBi's slopes (Press et al. 2022): 2^(-8/n), 2^(-16/n), … for n heads a power of two; for other
// counts, those of the next smaller power of two and then every second one of the next larger.
float alibi_slope(int head, int heads);

// RoPE's frequencies, in radians a position (Su et al. 2021): base^(-2i / rotary_dim) for
// i < rotary_dim / 2.
std::vector<float> rope_frequencies(int rotary_dim, double base);

// How RoPE is changed for contexts longer than those of training.
//   linear: all frequencies are divided by the factor (Chen et al. 2023, position interpolation).
//   llama3: as linear for wavelengths above original_positions / low_frequency_factor, unchanged
//   below original_positions / high_frequency_factor, blended between.
//   yarn: as linear for columns with at most kYarnSlow rotations in original_positions, unchanged
//   with at least kYarnFast, blended by column between; and scores grow by magnitude²,
//   magnitude = 0.1 · ln(factor) + 1 (Peng et al. 2023).
enum class RopeScaling { none, linear, llama3, yarn };

template <>
inline constexpr std::array kEnumNames<RopeScaling>{
    EnumName<RopeScaling>{RopeScaling::none, "none"},
    EnumName<RopeScaling>{RopeScaling::linear, "linear"},
    EnumName<RopeScaling>{RopeScaling::llama3, "llama3"},
    EnumName<RopeScaling>{RopeScaling::yarn, "yarn"}};

// β of the paper, which recommends these two for all models of the LLaMA family.
inline constexpr float kYarnFast = 32, kYarnSlow = 1;

// Whether a scaling depends on the context length of training.
constexpr bool needs_original_positions(RopeScaling scaling) {
  return scaling != RopeScaling::none && scaling != RopeScaling::linear;
}

struct RopeFormula {
  int rotary_dim = 0;
  double base = 10000;
  RopeScaling scaling = RopeScaling::none;
  float factor = 1;
  float low_frequency_factor = 1, high_frequency_factor = 4;  // llama3
  int64_t original_positions = 0;
};
// What rope_table() takes.
struct RopeAngles {
  std::vector<float> frequencies;
  float magnitude = 1;  // factor of sines and cosines
};
RopeAngles rope_angles(const RopeFormula& formula);

}  // namespace heed
