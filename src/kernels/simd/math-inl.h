// Exp, Exp2, Tanh and Erf for vectors of float, compiled once for each instruction set.
//
// The bounds were measured against double precision over every 61st float, on all x86 instruction
// sets; math_test.cc holds them. An ulp is the distance between neighbouring floats at the exact
// result: 1.2e-7 of a result just above a power of two, 6e-8 of one just below. NaN gives NaN.
//
// The coefficients are minimax fits (Remez) of the relative error, made for this file. Additions
// and multiplications are fused where the instruction set has that, so two instruction sets may
// differ in the last bits; on one of them, a value gives the same result in every lane.

// Highway includes this header once for each instruction set: hence the toggled guard.
#if defined(HEED_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_MATH_INL_H_
#undef HEED_KERNELS_MATH_INL_H_
#else
#define HEED_KERNELS_MATH_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// e^x, within 1.1 ulp. Zero where the result would be below the smallest normal float
// (x < -87.3365), infinity where it would be above the largest (x > 88.7228).
//
// e^x = 2^n e^r with n = round(x / ln 2), so |r| <= ln 2 / 2. The multiplication by 2^n adds n to
// the exponent's bits, which is exact from one end of the range to the other, 2^128 e^-0.3
// included.
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  constexpr float kLog2E = 1.44269504089f;
  // ln 2 in two parts; the first has 10 significant bits, so n * kLn2High is exact.
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  // Adding 1.5 * 2^23 leaves no bit for fractions: it rounds, and leaves n in the lowest bits.
  constexpr float kRounder = 12582912.0f;
  constexpr float kLargest = 88.72283f, kSmallest = -87.33654f;
  constexpr int kMantissaBits = 23;

  const V rounder = hn::Set(d, kRounder);
  const V shifted = hn::MulAdd(x, hn::Set(d, kLog2E), rounder);
  const V n = hn::Sub(shifted, rounder);
  V r = hn::NegMulAdd(n, hn::Set(d, kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, kLn2Low), r);

  // q = (e^r - 1 - r) / r^2; its error is 1e-8 of e^r.
  V q = hn::Set(d, 0.001390130989f);
  q = hn::MulAdd(q, r, hn::Set(d, 0.00836320009f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.04166685409f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.1666657696f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.4999999955f));
  const V exp_r = hn::Add(hn::Set(d, 1.0f), hn::MulAdd(hn::Mul(r, r), q, r));

  const hn::RebindToUnsigned<D> du;
  const auto exponent = hn::ShiftLeft<kMantissaBits>(hn::BitCast(du, shifted));
  const V scaled = hn::BitCast(d, hn::Add(hn::BitCast(du, exp_r), exponent));

  // x * infinity is infinity for a large x, and NaN for NaN.
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const V y = hn::IfThenElse(hn::Le(x, hn::Set(d, kLargest)), scaled, hn::Mul(x, infinity));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kSmallest)), y);
}

// 2^x for x below 127.5, within 2.3 ulp; 1 for 0, and zero where the result would be below the
// smallest normal float (x < -126). For the softmax of attention: two thirds of Exp's instructions.
// From 127.5 on the result means nothing.
//
// 2^x = 2^n 2^r with n = round(x), so |r| <= 1/2.
template <class D, class V>
HWY_INLINE V Exp2(D d, V x) {
  // As in Exp, and 127 more: the lowest bits are those of 2^n's exponent.
  constexpr float kRounder = 12582912.0f + 127.0f;
  constexpr float kSmallest = -126.0f;
  constexpr int kMantissaBits = 23;

  const V rounder = hn::Set(d, kRounder);
  const V shifted = hn::Add(x, rounder);
  const V r = hn::Sub(x, hn::Sub(shifted, rounder));

  // Its error is 9e-8 of 2^r.
  V y = hn::Set(d, 0.001326505095f);
  y = hn::MulAdd(y, r, hn::Set(d, 0.009671247564f));
  y = hn::MulAdd(y, r, hn::Set(d, 0.05550730601f));
  y = hn::MulAdd(y, r, hn::Set(d, 0.2402224541f));
  y = hn::MulAdd(y, r, hn::Set(d, 0.6931470037f));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0f));

  const hn::RebindToUnsigned<D> du;
  const V power = hn::BitCast(d, hn::ShiftLeft<kMantissaBits>(hn::BitCast(du, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kSmallest)), hn::Mul(y, power));
}

// tanh(x), within 7 ulp (the largest errors are above x = 1; 4e-7), never beyond [-1, 1], and
// exactly 1 or -1 where that is the nearest float.
template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  constexpr float kOne = 9.0109f;  // tanh rounds to 1 from here on

  // tanh(a) / a as a quotient of polynomials in a^2 with positive terms only: nothing cancels.
  const V a = hn::Abs(x);
  const V s = hn::Mul(a, a);
  V p = hn::Set(d, 1.331906046e-8f);
  V q = hn::Set(d, 7.762014344e-7f);
  p = hn::MulAdd(p, s, hn::Set(d, 2.058347158e-5f));
  q = hn::MulAdd(q, s, hn::Set(d, 0.0003283091815f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.003494033903f));
  q = hn::MulAdd(q, s, hn::Set(d, 0.02587107062f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.1337971736f));
  q = hn::MulAdd(q, s, hn::Set(d, 0.467130326f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.999999979f));
  q = hn::MulAdd(q, s, hn::Set(d, 1.0f));
  const V t = hn::Div(hn::Mul(a, p), q);

  // Comparisons rather than Min: they let NaN through on every instruction set.
  const V one = hn::Set(d, 1.0f);
  const auto is_one = hn::Or(hn::Gt(a, hn::Set(d, kOne)), hn::Gt(t, one));
  return hn::CopySignToAbs(hn::IfThenElse(is_one, one, t), x);
}

// erf(x) = 2 / sqrt(pi) * integral of e^(-t^2) from 0 to x, within 7 ulp, never beyond [-1, 1],
// and exactly 1 or -1 where that is the nearest float.
template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  constexpr float kOne = 3.9192f;  // erf rounds to 1 from here on

  const V a = hn::Abs(x);
  const V s = hn::Mul(a, a);
  V p = hn::Set(d, 2.041969845e-6f);
  V q = hn::Set(d, 3.800409007e-5f);
  p = hn::MulAdd(p, s, hn::Set(d, 0.0002848090769f));
  q = hn::MulAdd(q, s, hn::Set(d, 0.001165216685f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.003779624676f));
  q = hn::MulAdd(q, s, hn::Set(d, 0.01499746849f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.05279033488f));
  q = hn::MulAdd(q, s, hn::Set(d, 0.1142576664f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.1907841712f));
  q = hn::MulAdd(q, s, hn::Set(d, 0.502410789f));
  p = hn::MulAdd(p, s, hn::Set(d, 1.128379145f));
  q = hn::MulAdd(q, s, hn::Set(d, 1.0f));
  const V t = hn::Div(hn::Mul(a, p), q);

  const V one = hn::Set(d, 1.0f);
  const auto is_one = hn::Or(hn::Gt(a, hn::Set(d, kOne)), hn::Gt(t, one));
  return hn::CopySignToAbs(hn::IfThenElse(is_one, one, t), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_MATH_INL_H_
