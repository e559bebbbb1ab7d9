#include "kernels/attention/rope.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/rope.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "base/check.h"
#include "hwy/highway.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE void Rotate(FloatVec cos, FloatVec sin, FloatVec& a, FloatVec& b) {
  const auto rotated = hn::NegMulAdd(b, sin, hn::Mul(a, cos));
  b = hn::MulAdd(a, sin, hn::Mul(b, cos));
  a = rotated;
}

// One row's angles; `direction` is 1, or -1 for the inverse.
struct RowAngles {
  const float* cos;
  const float* sin;
  float direction;
  int64_t pairs;
};

HWY_INLINE void rotate_halves(const RowAngles& angles, float* head) {
  const FloatTag d;
  const auto direction = hn::Set(d, angles.direction);
  for_each_vector(d, angles.pairs, [&](int64_t i, auto io) HWY_ATTR {
    auto a = io.Load(d, head + i), b = io.Load(d, head + angles.pairs + i);
    const auto sin = hn::Mul(direction, io.Load(d, angles.sin + i));
    Rotate(io.Load(d, angles.cos + i), sin, a, b);
    io.Store(a, d, head + i);
    io.Store(b, d, head + angles.pairs + i);
  });
}

// Rotates interleaved pairs, as many as a vector has lanes.
template <class Io>
HWY_INLINE void rotate_pairs(const RowAngles& angles, int64_t i, Io io, float* pairs) {
  const FloatTag d;
  FloatVec a, b;
  hn::LoadInterleaved2(d, pairs, a, b);
  const auto sin = hn::Mul(hn::Set(d, angles.direction), io.Load(d, angles.sin + i));
  Rotate(io.Load(d, angles.cos + i), sin, a, b);
  hn::StoreInterleaved2(a, b, d, pairs);
}

HWY_INLINE void rotate_interleaved(const RowAngles& angles, float* head) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= angles.pairs; i += lanes) {
    rotate_pairs(angles, i, WholeVector{}, head + 2 * i);
  }
  if (i == angles.pairs) return;
  // Highway has no masked form of the interleaved load, so the last pairs go through a buffer.
  const int64_t rest = angles.pairs - i;
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float) * 2] = {};
  std::copy_n(head + 2 * i, 2 * rest, buffer);
  rotate_pairs(angles, i, PartOfVector{static_cast<size_t>(rest)}, buffer);
  std::copy_n(buffer, 2 * rest, head + 2 * i);
}

void rope_kernel(const Rope& rope) {
  const int64_t pairs = rope.rotary_dim / 2;
  for (int64_t row = 0; row < rope.rows; ++row) {
    const RowAngles angles{rope.cos + row * pairs, rope.sin + row * pairs,
                           rope.inverse ? -1.0f : 1.0f, pairs};
    for (int head = 0; head < rope.heads; ++head) {
      float* x = rope.x + row * rope.stride + int64_t{head} * rope.head_dim;
      if (rope.layout == RopeLayout::half) {
        rotate_halves(angles, x);
      } else {
        rotate_interleaved(angles, x);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(rope_kernel);

void rope(const Rope& rope) {
  HEED_DCHECK(rope.rotary_dim % 2 == 0 && rope.rotary_dim <= rope.head_dim,
              "rope: rotary_dim must be even and at most head_dim");
  HWY_DYNAMIC_DISPATCH(rope_kernel)(rope);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
