// The SIMD tags and vectors that all kernels use. A tag chooses the lane type of a Highway function;
// all tags below have as many lanes as FloatTag.

// Per-target include guard, as Highway's own -inl.h files have it.
#if defined(HEED_KERNELS_SIMD_TYPES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_SIMD_TYPES_INL_H_
#undef HEED_KERNELS_SIMD_TYPES_INL_H_
#else
#define HEED_KERNELS_SIMD_TYPES_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
using Int32Tag = hn::RebindToSigned<FloatTag>;
using Int32Vec = hn::Vec<Int32Tag>;
using Uint32Tag = hn::RebindToUnsigned<FloatTag>;
using Uint16Tag = hn::Rebind<uint16_t, FloatTag>;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_SIMD_TYPES_INL_H_
