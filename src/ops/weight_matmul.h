// How every op multiplies rows by a weight in the forward.
#pragma once

#include <algorithm>

#include "base/check.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/packed_matmul.h"
#include "ops/ctx.h"
#include "ops/weight.h"

namespace heed {

// The fused epilogue of a matmul with a packed weight.
struct Epilogue {
  kernels::Activation activation = kernels::Activation::none;
  ConstMat residual{};  // [rows, out]; empty: none
};

// y = activation(x Wᵀ + b) + residual for a packed weight, which has no gradient.
// x [rows, in], y [rows, out]
inline void packed_linear(Ctx& ctx, ConstMat x, const Linear& layer, const Epilogue& epilogue,
                          Mat y) {
  HEED_CHECK(!ctx.tape, "linear: a packed weight must not be used with a tape");
  const kernels::PackedWeight& w = layer.weight.packed;
  const int64_t floats = kernels::packed_matmul_scratch_floats(x.rows, w, ctx.pool.threads());
  const Scratch scratch(ctx, std::max<int64_t>(floats, 1));
  if (ctx.measuring()) return;
  kernels::packed_matmul(ctx.pool, {.m = x.rows,
                                    .x = x.data,
                                    .x_row = x.stride,
                                    .w = w,
                                    .bias = layer.bias ? layer.bias.value.data : nullptr,
                                    .activation = epilogue.activation,
                                    .residual = epilogue.residual.data,
                                    .residual_row = epilogue.residual.stride,
                                    .y = y.data,
                                    .y_row = y.stride,
                                    .scratch = scratch.data()});
}

// y = x Wᵀ without the bias. A row's bits depend on that row and on W
// alone, with a tape and without.  x [rows, in], y [rows, out]
inline void weight_matmul(Ctx& ctx, ConstMat x, const Linear& layer, Mat y) {
  if (layer.weight.packed) {
    return packed_linear(ctx, x, {.weight = layer.weight}, {}, y);
  }
  const int64_t floats = kernels::matmul_scratch_floats(x.rows, y.cols, x.cols, ctx.pool.threads());
  const Scratch scratch(ctx, std::max<int64_t>(floats, 1));
  if (ctx.measuring()) return;
  const ConstMat w = layer.weight.value;
  kernels::matmul(ctx.pool, {.m = x.rows,
                             .n = y.cols,
                             .k = x.cols,
                             .x = x.data,
                             .x_row = x.stride,
                             .w = w.data,
                             .w_row = w.stride,
                             .y = y.data,
                             .y_row = y.stride,
                             .scratch = scratch.data()});
}

}  // namespace heed
