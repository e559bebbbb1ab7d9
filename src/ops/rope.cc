#include <cmath>

#include "ops/ops.h"

namespace heed {
namespace {

void rotate(Ctx& ctx, Mat x, const RopeTable& table, const RopeShape& shape, bool inverse) {
  ctx.parallel(x.rows, row_grain(x.cols), [&](int64_t begin, int64_t end) {
    kernels::rope({.x = x.row(begin),
                   .stride = x.stride,
                   .cos = table.cos.row(begin),
                   .sin = table.sin.row(begin),
                   .rows = end - begin,
                   .heads = shape.heads,
                   .head_dim = shape.head_dim,
                   .rotary_dim = static_cast<int>(2 * table.cos.cols),
                   .layout = shape.layout,
                   .inverse = inverse});
  });
}

struct Record {
  Gradient* x;  // the same for input and output: rotated in place
  RopeTable table;
  RopeShape shape;

  // The inverse of a rotation is its transpose: d_x is d_y rotated back.
  void backward(Ctx& ctx) {
    if (x->written) rotate(ctx, ctx.tape->arrived(ctx, *x), table, shape, true);
  }
};

}  // namespace

RopeTable rope_table(Ctx& ctx, std::span<const int32_t> positions,
                     std::span<const float> frequencies, float magnitude) {
  const auto rows = static_cast<int64_t>(positions.size());
  const auto pairs = static_cast<int64_t>(frequencies.size());
  const RopeTable table{ctx.matrix(rows, pairs), ctx.matrix(rows, pairs)};
  ctx.parallel(rows, row_grain(64 * pairs), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t i = 0; i < pairs; ++i) {
        // The angle in float, as the models were trained, its sine and cosine in double.
        const float angle = static_cast<float>(positions[static_cast<size_t>(r)]) *
                            frequencies[static_cast<size_t>(i)];
        table.cos.row(r)[i] = magnitude * static_cast<float>(std::cos(double{angle}));
        table.sin.row(r)[i] = magnitude * static_cast<float>(std::sin(double{angle}));
      }
    }
  });
  return table;
}

Var rope(Ctx& ctx, Var x, const RopeTable& table, const RopeShape& shape) {
  HEED_CHECK(x.cols() == int64_t{shape.heads} * shape.head_dim,
             "rope: x must be [rows, heads · head_dim]");
  HEED_CHECK(table.cos.rows == x.rows() && 2 * table.cos.cols <= shape.head_dim,
             "rope: the table must have one row for each row of x");
  if (value_is_kept(x)) x = scale(ctx, x, 1);  // rotate a copy
  rotate(ctx, x.value, table, shape, false);
  if (ctx.tape && x.gradient) ctx.tape->record(nullptr, Record{x.gradient, table, shape});
  return x;
}

}  // namespace heed
