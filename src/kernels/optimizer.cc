#include "kernels/optimizer.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/highway.h"
#include "kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One division and one square root a vector: the corrections of the bias become two factors.
// Products and sums are fused by hand, which leaves the compiler nothing to fuse in one place
// (whole vectors) and not in another (the tail).
void adam_kernel(const AdamStep& step, const float* gradient, float* value, float* m, float* v,
                 int64_t n) {
  const hn::ScalableTag<float> d;
  const auto gradient_scale = hn::Set(d, step.gradient_scale), l2 = hn::Set(d, step.l2);
  const auto beta1 = hn::Set(d, step.beta1), rest1 = hn::Set(d, 1 - step.beta1);
  const auto beta2 = hn::Set(d, step.beta2), rest2 = hn::Set(d, 1 - step.beta2);
  const auto eps = hn::Set(d, step.eps);
  const double rate = step.learning_rate;
  const auto keep = hn::Set(d, static_cast<float>(1 - rate * step.weight_decay));
  const auto step_size = hn::Set(d, static_cast<float>(rate / step.bias_correction1));
  const auto root_factor =
      hn::Set(d, static_cast<float>(1 / std::sqrt(static_cast<double>(step.bias_correction2))));
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto value_before = io.Load(d, value + i);
    const auto g = hn::MulAdd(l2, value_before, hn::Mul(gradient_scale, io.Load(d, gradient + i)));
    const auto m_now = hn::MulAdd(beta1, io.Load(d, m + i), hn::Mul(rest1, g));
    const auto v_now = hn::MulAdd(beta2, io.Load(d, v + i), hn::Mul(hn::Mul(rest2, g), g));
    const auto divisor = hn::MulAdd(hn::Sqrt(v_now), root_factor, eps);
    const auto change = hn::Div(hn::Mul(step_size, m_now), divisor);
    io.Store(m_now, d, m + i);
    io.Store(v_now, d, v + i);
    io.Store(hn::MulSub(keep, value_before, change), d, value + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(adam_kernel);

void adam(const AdamStep& step, const float* gradient, float* value, float* m, float* v,
          int64_t n) {
  HWY_DYNAMIC_DISPATCH(adam_kernel)(step, gradient, value, m, v, n);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
