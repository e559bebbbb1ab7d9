// Biases of attention scores by relative position: one number for each head and distance.
//
// A new kind is an enumerator and a line of kRelativeBiases here, and its formula and derivative in
// relative_bias.cc. Attention, parameters and the memory plan use only what this header declares.
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/ctx.h"
#include "ops/positions.h"
#include "ops/weight.h"

namespace heed {

enum class RelativeBiasKind { none, t5, alibi, kerple };

struct RelativeBiasInfo {
  RelativeBiasKind kind;
  std::string_view weight;  // the parameter's name within its stack; empty: nothing is learned
};

// In the order of the enum.
inline constexpr RelativeBiasInfo kRelativeBiases[] = {
    {RelativeBiasKind::none, ""},
    // Raffel et al. 2020: weights[bucket(distance)][head]
    {RelativeBiasKind::t5, "t5_bias"},
    // Press et al. 2022: -slope(head) · |distance|
    {RelativeBiasKind::alibi, ""},
    // Chi et al. 2022, logarithmic: -r1 · log(1 + r2 · |distance|), r1 and r2 > 0 for each head. The
    // weights are log r1 and log r2, which may have any sign.
    {RelativeBiasKind::kerple, "kerple_bias"},
};
constexpr const RelativeBiasInfo& info(RelativeBiasKind kind) {
  return kRelativeBiases[static_cast<int>(kind)];
}

// Shared by all layers of a stack.
struct RelativeBias {
  RelativeBiasKind kind = RelativeBiasKind::none;
  Weight weights{};  // [weight_rows(), heads]
  T5Buckets t5_rule{};

  explicit operator bool() const { return kind != RelativeBiasKind::none; }
  int64_t weight_rows() const;  // 0: nothing is learned
};

void check(const RelativeBias& bias, int heads);

// The distances key - query of a batch, [-back, ahead], and their place in a head's row of biases.
// A table of distances grows with the length, not with its square.
struct RelativeDistances {
  int64_t back = 0, ahead = 0;

  int64_t stride() const;  // floats of one head's row, with the padding that the kernel reads
  int64_t center() const;  // index of distance 0 in it
};

// bias[head · stride + center + distance] for all heads and distances; 0 in the padding.
void fill_relative_bias(const RelativeBias& bias, int heads, const RelativeDistances& distances,
                        float* out);
// Adds the gradient of the weights, given that of the filled biases.
void relative_bias_backward(Ctx& ctx, const RelativeBias& bias, int heads,
                            const RelativeDistances& distances, const float* d_bias);

}  // namespace heed
