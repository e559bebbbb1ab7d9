// How every op multiplies rows by a weight in the forward.
#pragma once

#include <algorithm>

#include "kernels/row_product.h"
#include "ops/ctx.h"
#include "ops/weight.h"

namespace heed {

// y = x Wᵀ without the bias, for either layout of W. A row's bits depend on that row and on W
// alone, with a tape and without.  x [rows, in], y [rows, out]
inline void weight_product(Ctx& ctx, ConstMat x, const Linear& layer, Mat y) {
  const int64_t floats =
      kernels::row_product_scratch_floats(x.rows, y.cols, x.cols, ctx.pool.threads());
  const Scratch scratch(ctx, std::max<int64_t>(floats, 1));
  if (ctx.measuring()) return;
  const ConstMat w = layer.weight.value;
  kernels::row_product(ctx.pool, {.m = x.rows,
                                  .n = y.cols,
                                  .k = x.cols,
                                  .x = x.data,
                                  .x_row = x.stride,
                                  .w = w.data,
                                  .w_row = w.stride,
                                  .layout = layer.layout,
                                  .y = y.data,
                                  .y_row = y.stride,
                                  .scratch = scratch.data()});
}

}  // namespace heed
