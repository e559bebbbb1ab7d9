// f16 to float in registers, the same bits on every instruction set (convert.h).

// Per-target include guard, as Highway's own -inl.h files have it.
#if defined(HEED_KERNELS_F16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_F16_INL_H_
#undef HEED_KERNELS_F16_INL_H_
#else
#define HEED_KERNELS_F16_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/simd/simd_types-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// float has 8 bits of exponent and 23 of mantissa, f16 has 5 and 10: 13 bits go, and the bias falls
// from 127 to 15.
inline constexpr int kLostBits = 13;
inline constexpr int32_t kBiasChange = 127 - 15;
inline constexpr int32_t kF32Infinity = 0x7F800000, kF32QuietBit = 0x00400000;
inline constexpr int32_t kF16Infinity = 0x7C00, kF16QuietBit = 0x0200;
// Bits of the powers of two where f16's normal numbers begin (2^-14) and have ended (2^16).
inline constexpr int32_t kF16Smallest = (127 - 14) << 23, kF16Overflow = (127 + 16) << 23;

#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86

// The instruction does all of it. Highway's versions for other targets neither round nor know
// infinities, hence our own below.
HWY_INLINE FloatVec F16ToF32(hn::Vec<Uint16Tag> x) {
  return hn::PromoteTo(FloatTag(), hn::BitCast(hn::Rebind<hwy::float16_t, FloatTag>(), x));
}

#else

HWY_INLINE FloatVec F16ToF32(hn::Vec<Uint16Tag> x) {
  const FloatTag d;
  const Int32Tag di;
  const auto bits = hn::PromoteTo(di, x);
  const auto magnitude = hn::And(bits, hn::Set(di, 0x7FFF));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
  const auto shifted = hn::ShiftLeft<kLostBits>(magnitude);
  const auto bias = hn::Set(di, kBiasChange << 23);
  const auto normal = hn::Add(shifted, bias);
  // A subnormal is so many times 2^-24, which float multiplies exactly.
  const auto subnormal =
      hn::BitCast(di, hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, 0x1p-24f)));
  const auto quiet =
      hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(di, kF16Infinity)), hn::Set(di, kF32QuietBit));
  const auto not_finite = hn::Or(hn::Add(normal, bias), quiet);
  auto y = hn::IfThenElse(hn::Gt(hn::Set(di, 0x0400), magnitude), subnormal, normal);
  y = hn::IfThenElse(hn::Gt(hn::Set(di, kF16Infinity), magnitude), y, not_finite);
  return hn::BitCast(d, hn::Or(y, sign));
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_F16_INL_H_
