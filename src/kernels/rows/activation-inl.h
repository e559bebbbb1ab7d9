// One functor for each activation: Forward(d, x), and Derivative(d, saved) where `saved` is the
// input x or the output, as backward_needs_input in activation.h says.

#if defined(HEED_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ACTIVATION_INL_H_
#undef HEED_KERNELS_ACTIVATION_INL_H_
#else
#define HEED_KERNELS_ACTIVATION_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/rows/activation.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 1 / (1 + e^-x)
template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

struct NoActivation {
  static constexpr Activation kActivation = Activation::none;
  template <class D, class V>
  static HWY_INLINE V Forward(D, V x) {
    return x;
  }
  template <class D, class V>
  static HWY_INLINE V Derivative(D d, V) {
    return hn::Set(d, 1.0f);
  }
};

struct Relu {
  static constexpr Activation kActivation = Activation::relu;
  // Not Max(x, 0): that would turn NaN into 0 on x86, and hide a broken training run.
  template <class D, class V>
  static HWY_INLINE V Forward(D d, V x) {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
  template <class D, class V>
  static HWY_INLINE V Derivative(D d, V y) {
    return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), hn::Set(d, 1.0f));
  }
};

// max(x, 0)^2 (So et al., 2021)
struct SquaredRelu {
  static constexpr Activation kActivation = Activation::relu2;
  template <class D, class V>
  static HWY_INLINE V Forward(D d, V x) {
    const V r = Relu::Forward(d, x);
    return hn::Mul(r, r);
  }
  // 2 max(x, 0)
  template <class D, class V>
  static HWY_INLINE V Derivative(D d, V x) {
    const V r = Relu::Forward(d, x);
    return hn::Add(r, r);
  }
};

// x Φ(x), with Φ the distribution function of the normal distribution (Hendrycks & Gimpel, 2016).
// The error is absolute, below 1e-6: far below 0, where the result vanishes, 1 + erf cancels.
struct Gelu {
  static constexpr Activation kActivation = Activation::gelu;
  static constexpr float kSqrtHalf = 0.70710678119f;
  static constexpr float kDensityAtZero = 0.39894228040f;  // 1 / sqrt(2 pi)

  template <class D, class V>
  static HWY_INLINE V Phi(D d, V x) {
    const V half = hn::Set(d, 0.5f);
    return hn::MulAdd(half, Erf(d, hn::Mul(x, hn::Set(d, kSqrtHalf))), half);
  }
  template <class D, class V>
  static HWY_INLINE V Forward(D d, V x) {
    return hn::Mul(x, Phi(d, x));
  }
  // Φ(x) + x φ(x)
  template <class D, class V>
  static HWY_INLINE V Derivative(D d, V x) {
    const V density = Exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
    return hn::MulAdd(hn::Mul(x, hn::Set(d, kDensityAtZero)), density, Phi(d, x));
  }
};

// x/2 (1 + tanh(u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), which is x sigmoid(2u): that form
// costs no second division and keeps its relative precision where x is far below 0.
struct GeluTanh {
  static constexpr Activation kActivation = Activation::gelu_tanh;
  static constexpr float kTwoSqrtTwoOverPi = 1.59576912161f;
  static constexpr float kCubic = 0.044715f;
  // sigmoid(2u) is 0 or 1 long before x^2 reaches this; it keeps infinity * 0 out.
  static constexpr float kLargestSquare = 1024.0f;

  template <class D, class V>
  static HWY_INLINE V Square(D d, V x) {
    return hn::Min(hn::Mul(x, x), hn::Set(d, kLargestSquare));
  }
  // sigmoid(2u); x2 = x^2
  template <class D, class V>
  static HWY_INLINE V Gate(D d, V x, V x2) {
    const V slope = hn::Set(d, kTwoSqrtTwoOverPi);
    const V cubic = hn::Set(d, kTwoSqrtTwoOverPi * kCubic);
    return Sigmoid(d, hn::Mul(x, hn::MulAdd(cubic, x2, slope)));
  }
  template <class D, class V>
  static HWY_INLINE V Forward(D d, V x) {
    return hn::Mul(x, Gate(d, x, Square(d, x)));
  }
  // s + x s (1 - s) d(2u)/dx, with s = sigmoid(2u)
  template <class D, class V>
  static HWY_INLINE V Derivative(D d, V x) {
    const V x2 = Square(d, x);
    const V s = Gate(d, x, x2);
    const V inner =
        hn::MulAdd(hn::Set(d, 3 * kTwoSqrtTwoOverPi * kCubic), x2, hn::Set(d, kTwoSqrtTwoOverPi));
    return hn::MulAdd(hn::Mul(x, inner), hn::NegMulAdd(s, s, s), s);
  }
};

// x sigmoid(x)
struct Silu {
  static constexpr Activation kActivation = Activation::silu;
  template <class D, class V>
  static HWY_INLINE V Forward(D d, V x) {
    return hn::Mul(x, Sigmoid(d, x));
  }
  // s + x s (1 - s), with s = sigmoid(x)
  template <class D, class V>
  static HWY_INLINE V Derivative(D d, V x) {
    const V s = Sigmoid(d, x);
    return hn::MulAdd(x, hn::NegMulAdd(s, s, s), s);
  }
};

struct TanhActivation {
  static constexpr Activation kActivation = Activation::tanh;
  template <class D, class V>
  static HWY_INLINE V Forward(D d, V x) {
    return Tanh(d, x);
  }
  template <class D, class V>
  static HWY_INLINE V Derivative(D d, V y) {
    return hn::NegMulAdd(y, y, hn::Set(d, 1.0f));
  }
};

// Calls body with the functor of `activation`.
template <class Body>
HWY_INLINE void VisitActivation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::none:
      return body(NoActivation());
    case Activation::relu:
      return body(Relu());
    case Activation::relu2:
      return body(SquaredRelu());
    case Activation::gelu:
      return body(Gelu());
    case Activation::gelu_tanh:
      return body(GeluTanh());
    case Activation::silu:
      return body(Silu());
    case Activation::tanh:
      return body(TanhActivation());
  }
}

// The derivative at the input x, for callers that have no saved output.
template <class F, class D, class V>
HWY_INLINE V DerivativeAtInput(D d, V x, V y) {
  return F::Derivative(d, backward_needs_input(F::kActivation) ? x : y);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_ACTIVATION_INL_H_
