#include "kernels/rows/embedding.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/embedding.cc"
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

// y (+)= scale x
template <bool kAccumulate>
HWY_INLINE void scaled_row(float scale, const float* x, float* y, int64_t n) {
  const FloatTag d;
  const auto factors = hn::Set(d, scale);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto from_x = io.Load(d, x + i);
    if constexpr (kAccumulate) {
      io.Store(hn::MulAdd(factors, from_x, io.Load(d, y + i)), d, y + i);
    } else {
      io.Store(hn::Mul(factors, from_x), d, y + i);
    }
  });
}

void gather_rows_kernel(const GatherRows& gather) {
  for (int64_t row = 0; row < gather.rows; ++row) {
    const float* from = gather.table + gather.ids[row] * gather.cols;
    float* to = gather.y + row * gather.cols;
    if (gather.accumulate) {
      scaled_row<true>(gather.scale, from, to, gather.cols);
    } else {
      scaled_row<false>(gather.scale, from, to, gather.cols);
    }
  }
}

void scatter_add_rows_kernel(const ScatterRows& scatter) {
  for (int64_t row = 0; row < scatter.rows; ++row) {
    scaled_row<true>(scatter.scale, scatter.dy + row * scatter.stride,
                     scatter.dtable + scatter.ids[row] * scatter.table_stride, scatter.cols);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(gather_rows_kernel);
HWY_EXPORT(scatter_add_rows_kernel);

namespace {

[[maybe_unused]] bool none_negative(const int32_t* ids, int64_t n) {
  return std::none_of(ids, ids + n, [](int32_t id) { return id < 0; });
}

}  // namespace

void gather_rows(const GatherRows& gather) {
  HEED_DCHECK(none_negative(gather.ids, gather.rows), "embedding: ids must not be negative");
  HWY_DYNAMIC_DISPATCH(gather_rows_kernel)(gather);
}

void scatter_add_rows(const ScatterRows& scatter) {
  HEED_DCHECK(none_negative(scatter.ids, scatter.rows), "embedding: ids must not be negative");
  HWY_DYNAMIC_DISPATCH(scatter_add_rows_kernel)(scatter);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
