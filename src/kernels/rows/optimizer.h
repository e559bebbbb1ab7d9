// Adam and AdamW: one pass over gradient, value and the two moments.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace heed::kernels {

// Everything that one step has in common for all parameters of a group.
struct AdamStep {
  float learning_rate = 0;
  float beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f;
  float weight_decay = 0;  // decoupled (AdamW): value -= learning_rate weight_decay value
  float l2 = 0;            // classic Adam: l2 value is added to the gradient
  // 1 - beta^t at step t = 1, 2, …; worked out from the betas above, in double.
  float bias_correction1 = 1, bias_correction2 = 1;
  float gradient_scale = 1;  // the gradient is multiplied by it first: clipping, averaging
};

// Kingma & Ba (2015), Algorithm 1, with the weight decay of Loshchilov & Hutter (2019):
//   g = gradient_scale gradient + l2 value
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   value = (1 - learning_rate weight_decay) value
//           - learning_rate (m / bias_correction1) / (sqrt(v / bias_correction2) + eps)
// Cutting [0, n) anywhere gives the same bits.
void adam(const AdamStep& step, const float* gradient, float* value, float* m, float* v, int64_t n);

// The same with moments kept as bf16. What they are rounded to is drawn: up as often as what is cut
// off says, so that the mean is right. To the nearest, small changes would be lost every time, and
// with beta2 = 0.999 v would never fall again. The draws are those of elements `first` … of the
// stream: `first` is a multiple of kRoundingGroup, and cutting at such gives the same bits.
struct Rounding {
  RandomKey key;
  int64_t first = 0;
};
inline constexpr int64_t kRoundingGroup = 64;
void adam_bf16(const AdamStep& step, const Rounding& rounding, const float* gradient, float* value,
               uint16_t* m, uint16_t* v, int64_t n);

}  // namespace heed::kernels
