#include "kernels/rows/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/convert.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/highway.h"
#include "kernels/simd/f16-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86

HWY_INLINE hn::Vec<Uint16Tag> F32ToF16(FloatVec x) {
  return hn::BitCast(Uint16Tag(), hn::DemoteTo(hn::Rebind<hwy::float16_t, FloatTag>(), x));
}

#else

HWY_INLINE hn::Vec<Uint16Tag> F32ToF16(FloatVec x) {
  const FloatTag d;
  const Int32Tag di;
  const auto bits = hn::BitCast(di, x);
  const auto magnitude = hn::And(bits, hn::Set(di, 0x7FFFFFFF));
  const auto sign = hn::And(hn::BitCast(di, hn::ShiftRight<16>(hn::BitCast(Uint32Tag(), x))),
                            hn::Set(di, 0x8000));
  // Adding just under half of what is lost, or half when the last bit kept is odd, rounds to even;
  // a carry runs into the exponent, up to infinity, as it should.
  const auto capped = hn::Min(magnitude, hn::Set(di, kF16Overflow));
  const auto odd = hn::And(hn::ShiftRight<kLostBits>(capped), hn::Set(di, 1));
  const auto rounding = hn::Add(odd, hn::Set(di, (1 << (kLostBits - 1)) - 1));
  const auto rebiased = hn::Sub(capped, hn::Set(di, kBiasChange << 23));
  const auto normal = hn::ShiftRight<kLostBits>(hn::Add(rebiased, rounding));
  // f16's subnormals are multiples of 2^-24, the last bit of a float in [0.5, 1): the addition
  // rounds to it.
  const auto half = hn::Set(d, 0.5f);
  const auto subnormal =
      hn::Sub(hn::BitCast(di, hn::Add(hn::BitCast(d, magnitude), half)), hn::BitCast(di, half));
  const auto nan = hn::Or(hn::And(hn::ShiftRight<kLostBits>(magnitude), hn::Set(di, 0x03FF)),
                          hn::Set(di, kF16Infinity | kF16QuietBit));
  auto y = hn::IfThenElse(hn::Gt(hn::Set(di, kF16Smallest), magnitude), subnormal, normal);
  y = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, kF32Infinity)), nan, y);
  return hn::DemoteTo(Uint16Tag(), hn::Or(y, sign));
}

#endif

HWY_INLINE FloatVec Bf16ToF32(hn::Vec<Uint16Tag> x) {
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(Uint32Tag(), x)));
}

HWY_INLINE hn::Vec<Uint16Tag> F32ToBf16(FloatVec x) {
  const Int32Tag di;
  const Uint32Tag du;
  const auto bits = hn::BitCast(du, x);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto rounding = hn::Add(hn::And(upper, hn::Set(du, 1u)), hn::Set(du, 0x7FFFu));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, rounding));
  const auto quiet_nan = hn::Or(upper, hn::Set(du, uint32_t{kF32QuietBit} >> 16));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(x));
  return hn::DemoteTo(Uint16Tag(), hn::BitCast(di, hn::IfThenElse(is_nan, quiet_nan, rounded)));
}

void f16_to_f32_kernel(const uint16_t* x, float* y, int64_t n) {
  for_each_vector(FloatTag(), n, [&](int64_t i, auto io) HWY_ATTR {
    io.Store(F16ToF32(io.Load(Uint16Tag(), x + i)), FloatTag(), y + i);
  });
}

void f32_to_f16_kernel(const float* x, uint16_t* y, int64_t n) {
  for_each_vector(FloatTag(), n, [&](int64_t i, auto io) HWY_ATTR {
    io.Store(F32ToF16(io.Load(FloatTag(), x + i)), Uint16Tag(), y + i);
  });
}

void bf16_to_f32_kernel(const uint16_t* x, float* y, int64_t n) {
  for_each_vector(FloatTag(), n, [&](int64_t i, auto io) HWY_ATTR {
    io.Store(Bf16ToF32(io.Load(Uint16Tag(), x + i)), FloatTag(), y + i);
  });
}

void f32_to_bf16_kernel(const float* x, uint16_t* y, int64_t n) {
  for_each_vector(FloatTag(), n, [&](int64_t i, auto io) HWY_ATTR {
    io.Store(F32ToBf16(io.Load(FloatTag(), x + i)), Uint16Tag(), y + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(f16_to_f32_kernel);
HWY_EXPORT(f32_to_f16_kernel);
HWY_EXPORT(bf16_to_f32_kernel);
HWY_EXPORT(f32_to_bf16_kernel);

void f16_to_f32(const uint16_t* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(f16_to_f32_kernel)(x, y, n);
}

void f32_to_f16(const float* x, uint16_t* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(f32_to_f16_kernel)(x, y, n);
}

void bf16_to_f32(const uint16_t* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(bf16_to_f32_kernel)(x, y, n);
}

void f32_to_bf16(const float* x, uint16_t* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(f32_to_bf16_kernel)(x, y, n);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
