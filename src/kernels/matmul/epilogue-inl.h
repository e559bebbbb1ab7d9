// The epilogue of packed_matmul(), applied while results are still in cache: bias and activation with
// the bits of bias_activation() (activation.h), residual with those of add() (elementwise.h).

// Per-target include guard, as Highway's own -inl.h files have it.
#if defined(HEED_KERNELS_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_EPILOGUE_INL_H_
#undef HEED_KERNELS_EPILOGUE_INL_H_
#else
#define HEED_KERNELS_EPILOGUE_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/matmul/packed_matmul.h"
#include "kernels/rows/activation-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Part of y: rows [row, row + rows), columns [col, col + cols).
struct EpilogueRange {
  int64_t row, rows, col, cols;
};

template <class F>
HWY_NOINLINE void epilogue_loop(const PackedMatmul& p, const EpilogueRange& part) {
  const FloatTag d;
  const float* bias = p.bias ? p.bias + part.col : nullptr;
  for (int64_t r = part.row; r < part.row + part.rows; ++r) {
    float* y = p.y + r * p.y_row + part.col;
    const float* residual = p.residual ? p.residual + r * p.residual_row + part.col : nullptr;
    for_each_vector(d, part.cols, [&](int64_t i, auto io) HWY_ATTR {
      auto v = io.Load(d, y + i);
      if (bias) v = hn::Add(v, io.Load(d, bias + i));
      v = F::Forward(d, v);
      if (residual) v = hn::Add(v, io.Load(d, residual + i));
      io.Store(v, d, y + i);
    });
  }
}

HWY_INLINE void apply_epilogue(const PackedMatmul& p, const EpilogueRange& part) {
  if (!p.bias && p.activation == Activation::none && !p.residual) return;
  VisitActivation(p.activation, [&](auto f) HWY_ATTR { epilogue_loop<decltype(f)>(p, part); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_EPILOGUE_INL_H_
