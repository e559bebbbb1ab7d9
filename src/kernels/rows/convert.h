// 16-bit floats, as bits, to and from float: f16 is IEEE 754 binary16, bf16 the upper half of a
// float. Narrowing rounds to nearest, ties to even; too large becomes infinity; a NaN stays a NaN
// (quiet, with its sign and the upper bits of its payload); subnormals are kept. The bits are the
// same on every instruction set. Input and output do not overlap.
#pragma once

#include <cstdint>

namespace heed::kernels {

void f16_to_f32(const uint16_t* x, float* y, int64_t n);
void f32_to_f16(const float* x, uint16_t* y, int64_t n);
void bf16_to_f32(const uint16_t* x, float* y, int64_t n);
void f32_to_bf16(const float* x, uint16_t* y, int64_t n);

}  // namespace heed::kernels
