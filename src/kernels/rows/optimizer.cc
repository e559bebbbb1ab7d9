#include "kernels/rows/optimizer.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/optimizer.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "base/check.h"
#include "hwy/highway.h"
#include "kernels/simd/random-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One division and one square root a vector: the corrections of the bias become two factors.
// Products and sums are fused by hand, which leaves the compiler nothing to fuse in one place
// (whole vectors) and not in another (the tail).
template <class D>
class AdamVectors {
 public:
  using V = hn::Vec<D>;

  HWY_INLINE AdamVectors(D d, const AdamStep& step)
      : gradient_scale_(hn::Set(d, step.gradient_scale)),
        l2_(hn::Set(d, step.l2)),
        beta1_(hn::Set(d, step.beta1)),
        rest1_(hn::Set(d, 1 - step.beta1)),
        beta2_(hn::Set(d, step.beta2)),
        rest2_(hn::Set(d, 1 - step.beta2)),
        eps_(hn::Set(d, step.eps)),
        keep_(hn::Set(d, static_cast<float>(1 - double{step.learning_rate} * step.weight_decay))),
        step_size_(
            hn::Set(d, static_cast<float>(double{step.learning_rate} / step.bias_correction1))),
        root_factor_(hn::Set(
            d, static_cast<float>(1 / std::sqrt(static_cast<double>(step.bias_correction2))))) {}

  // Returns the new value, and changes the moments.
  HWY_INLINE V Update(V gradient, V value, V& m, V& v) const {
    const auto g = hn::MulAdd(l2_, value, hn::Mul(gradient_scale_, gradient));
    m = hn::MulAdd(beta1_, m, hn::Mul(rest1_, g));
    v = hn::MulAdd(beta2_, v, hn::Mul(hn::Mul(rest2_, g), g));
    const auto divisor = hn::MulAdd(hn::Sqrt(v), root_factor_, eps_);
    const auto change = hn::Div(hn::Mul(step_size_, m), divisor);
    return hn::MulSub(keep_, value, change);
  }

 private:
  V gradient_scale_, l2_, beta1_, rest1_, beta2_, rest2_, eps_, keep_, step_size_, root_factor_;
};

void adam_kernel(const AdamStep& step, const float* gradient, float* value, float* m, float* v,
                 int64_t n) {
  const FloatTag d;
  const AdamVectors<decltype(d)> adam(d, step);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    auto m_now = io.Load(d, m + i), v_now = io.Load(d, v + i);
    const auto updated = adam.Update(io.Load(d, gradient + i), io.Load(d, value + i), m_now, v_now);
    io.Store(m_now, d, m + i);
    io.Store(v_now, d, v + i);
    io.Store(updated, d, value + i);
  });
}

// A word of 32 random bits serves one element: 16 for each moment.
static_assert(kRoundingGroup == kRandomWords, "a group's words are those of its elements");

// x + (random 16 bits) / 2^16 of what bf16 can tell apart, cut.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> DrawBf16(D, hn::Vec<D> x,
                                                     hn::Vec<hn::RebindToUnsigned<D>> random) {
  const hn::RebindToUnsigned<D> du;
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::BitCast(du, x), random));
  return hn::DemoteTo(hn::Rebind<uint16_t, D>(), hn::BitCast(hn::RebindToSigned<D>(), rounded));
}

void adam_bf16_kernel(const AdamStep& step, const Rounding& rounding, const float* gradient,
                      float* value, uint16_t* m, uint16_t* v, int64_t n) {
  const hn::CappedTag<float, kRandomBlocks> d;  // no vector reaches past a group
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const AdamVectors<decltype(d)> adam(d, step);
  const RandomStream stream(rounding.key);
  HWY_ALIGN uint32_t words[kRandomWords];
  auto block = static_cast<uint64_t>(rounding.first / kRoundingGroup) * kRandomBlocks;
  for (int64_t group = 0; group < n; group += kRoundingGroup, block += kRandomBlocks) {
    random_blocks(stream, block, words);
    for_each_vector(d, std::min(kRoundingGroup, n - group), [&](int64_t i, auto io) HWY_ATTR {
      const int64_t at = group + i;
      const auto wide = [&](const uint16_t* x) HWY_ATTR {
        return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, io.Load(d16, x + at))));
      };
      auto m_now = wide(m), v_now = wide(v);
      const auto updated =
          adam.Update(io.Load(d, gradient + at), io.Load(d, value + at), m_now, v_now);
      const auto random = hn::Load(du, words + i);
      io.Store(DrawBf16(d, m_now, hn::And(random, hn::Set(du, 0xFFFFu))), d16, m + at);
      io.Store(DrawBf16(d, v_now, hn::ShiftRight<16>(random)), d16, v + at);
      io.Store(updated, d, value + at);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(adam_kernel);
HWY_EXPORT(adam_bf16_kernel);

void adam(const AdamStep& step, const float* gradient, float* value, float* m, float* v,
          int64_t n) {
  HWY_DYNAMIC_DISPATCH(adam_kernel)(step, gradient, value, m, v, n);
}

void adam_bf16(const AdamStep& step, const Rounding& rounding, const float* gradient, float* value,
               uint16_t* m, uint16_t* v, int64_t n) {
  HEED_DCHECK(rounding.first % kRoundingGroup == 0,
              "adam: the range must start at a whole group of draws");
  HWY_DYNAMIC_DISPATCH(adam_bf16_kernel)(step, rounding, gradient, value, m, v, n);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
