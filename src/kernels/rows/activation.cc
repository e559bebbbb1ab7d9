#include "kernels/rows/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/activation.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/highway.h"
#include "kernels/rows/activation-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The loops below are functions of their own, one for each activation, rather than parts of one
// big switch: a compiler given the switch runs out of registers for constants.

template <class F>
HWY_NOINLINE void ActivateLoop(const float* x, float* y, int64_t n) {
  const FloatTag d;
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    io.Store(F::Forward(d, io.Load(d, x + i)), d, y + i);
  });
}

template <class F>
HWY_NOINLINE void ActivateBackwardLoop(const float* saved, const float* dy, float* dx, int64_t n) {
  const FloatTag d;
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto slope = F::Derivative(d, io.Load(d, saved + i));
    io.Store(hn::Mul(io.Load(d, dy + i), slope), d, dx + i);
  });
}

template <class F>
HWY_NOINLINE void BiasActivationLoop(const BiasActivation& args) {
  const FloatTag d;
  const float* bias = args.bias;
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * args.cols;
    float* sum = args.sum != nullptr ? args.sum + row * args.cols : nullptr;
    float* y = args.y + row * args.cols;
    for_each_vector(d, args.cols, [&](int64_t i, auto io) HWY_ATTR {
      auto v = io.Load(d, x + i);
      if (bias != nullptr) v = hn::Add(v, io.Load(d, bias + i));
      if (sum != nullptr) io.Store(v, d, sum + i);
      io.Store(F::Forward(d, v), d, y + i);
    });
  }
}

template <class F>
HWY_NOINLINE void GatedActivationLoop(const GatedActivation& args) {
  const FloatTag d;
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* gate = args.gate + row * args.input_stride;
    const float* up = args.up + row * args.input_stride;
    float* y = args.y + row * args.cols;
    for_each_vector(d, args.cols, [&](int64_t i, auto io) HWY_ATTR {
      const auto g = F::Forward(d, io.Load(d, gate + i));
      io.Store(hn::Mul(g, io.Load(d, up + i)), d, y + i);
    });
  }
}

template <class F>
HWY_NOINLINE void GatedActivationBackwardLoop(const GatedActivationBackward& args) {
  const FloatTag d;
  const bool accumulate = args.accumulate;
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* gate = args.gate + row * args.input_stride;
    const float* up = args.up + row * args.input_stride;
    const float* dy = args.dy + row * args.cols;
    float* dgate = args.dgate + row * args.gradient_stride;
    float* dup = args.dup + row * args.gradient_stride;
    for_each_vector(d, args.cols, [&](int64_t i, auto io) HWY_ATTR {
      const auto x = io.Load(d, gate + i);
      const auto g = F::Forward(d, x);
      const auto dg = hn::Mul(io.Load(d, up + i), DerivativeAtInput<F>(d, x, g));
      const auto v = io.Load(d, dy + i);
      const auto gate_gradient =
          accumulate ? hn::MulAdd(v, dg, io.Load(d, dgate + i)) : hn::Mul(v, dg);
      const auto up_gradient = accumulate ? hn::MulAdd(v, g, io.Load(d, dup + i)) : hn::Mul(v, g);
      io.Store(gate_gradient, d, dgate + i);
      io.Store(up_gradient, d, dup + i);
    });
  }
}

void Activate(Activation activation, const float* x, float* y, int64_t n) {
  VisitActivation(activation, [&](auto f) HWY_ATTR { ActivateLoop<decltype(f)>(x, y, n); });
}

void ActivateBackward(Activation activation, const float* saved, const float* dy, float* dx,
                      int64_t n) {
  VisitActivation(activation,
                  [&](auto f) HWY_ATTR { ActivateBackwardLoop<decltype(f)>(saved, dy, dx, n); });
}

void BiasActivationRows(const BiasActivation& args) {
  VisitActivation(args.activation, [&](auto f) HWY_ATTR { BiasActivationLoop<decltype(f)>(args); });
}

void GatedActivationRows(const GatedActivation& args) {
  VisitActivation(args.activation,
                  [&](auto f) HWY_ATTR { GatedActivationLoop<decltype(f)>(args); });
}

void GatedActivationBackwardRows(const GatedActivationBackward& args) {
  VisitActivation(args.activation,
                  [&](auto f) HWY_ATTR { GatedActivationBackwardLoop<decltype(f)>(args); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(Activate);
HWY_EXPORT(ActivateBackward);
HWY_EXPORT(BiasActivationRows);
HWY_EXPORT(GatedActivationRows);
HWY_EXPORT(GatedActivationBackwardRows);

void activate(Activation activation, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Activate)(activation, x, y, n);
}

void activate_backward(Activation activation, const float* saved, const float* dy, float* dx,
                       int64_t n) {
  HWY_DYNAMIC_DISPATCH(ActivateBackward)(activation, saved, dy, dx, n);
}

void bias_activation(const BiasActivation& args) { HWY_DYNAMIC_DISPATCH(BiasActivationRows)(args); }

void gated_activation(const GatedActivation& args) {
  HWY_DYNAMIC_DISPATCH(GatedActivationRows)(args);
}

void gated_activation_backward(const GatedActivationBackward& args) {
  HWY_DYNAMIC_DISPATCH(GatedActivationBackwardRows)(args);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
