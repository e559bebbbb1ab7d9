#include "kernels/rows/dropout.h"
#include "kernels/rows/elementwise.h"
#include "ops/ops.h"
#include "ops/weight_gradient.h"
#include "ops/weight_matmul.h"

namespace heed {
namespace {

struct Record {
  Gradient *out, *in;
  Linear layer;
  Activation activation;
  ConstMat x;
  ConstMat saved;  // what the activation's derivative is computed from
  kernels::Dropout drop;

  void backward(Ctx& ctx);
};

// With dz = dropout(dy) ∘ activation'(z):  dW += dzᵀ x,  db += Σ_rows dz,  dx += dz W.
void Record::backward(Ctx& ctx) {
  const Mat dz = ctx.tape->arrived(ctx, *out);  // may be overwritten: dy has no later reader
  if (activation != Activation::none) {
    ctx.parallel(dz.size(), kElementGrain, [&](int64_t begin, int64_t end) {
      float* at = dz.data + begin;
      if (drop.p > 0) kernels::dropout(drop, begin, at, at, end - begin);
      kernels::activate_backward(activation, saved.data + begin, at, at, end - begin);
    });
  }
  if (layer.bias && layer.bias.gradient) {
    const GradientTarget db = gradient_target(ctx, layer.bias);
    ctx.parallel(dz.cols, column_grain(64), [&](int64_t begin, int64_t end) {
      kernels::column_sum({.x = dz.data + begin,
                           .stride = dz.stride,
                           .sum = db.value.data + begin,
                           .accumulate = db.accumulate,
                           .rows = dz.rows,
                           .cols = end - begin});
    });
  }
  if (layer.weight.gradient) {
    const GradientTarget dw = gradient_target(ctx, layer.weight);
    ctx.gemm({.transpose_a = true,
              .m = dz.cols,
              .n = x.cols,
              .k = dz.rows,
              .a = dz.data,
              .lda = dz.stride,
              .b = x.data,
              .ldb = x.stride,
              .c = dw.value.data,
              .ldc = dw.value.stride,
              .accumulate = dw.accumulate});
  }
  if (in) {
    const GradientTarget dx = ctx.tape->target(ctx, *in);
    const ConstMat w = layer.weight.value;
    ctx.gemm({.m = dz.rows,
              .n = dx.value.cols,
              .k = dz.cols,
              .a = dz.data,
              .lda = dz.stride,
              .b = w.data,
              .ldb = w.stride,
              .c = dx.value.data,
              .ldc = dx.value.stride,
              .accumulate = dx.accumulate});
  }
}

// Whether the derivative can be computed after dropout has overwritten the output. ReLU's can: where
// dropout put a zero, no gradient arrives.
bool derivative_survives_dropout(Activation activation) {
  return activation == Activation::relu || kernels::backward_needs_input(activation);
}

}  // namespace

Var linear(Ctx& ctx, Var x, const Linear& layer, Activation activation, float p) {
  check_dropout(p);
  if (p > 0 && !derivative_survives_dropout(activation)) {
    return dropout(ctx, linear(ctx, x, layer, activation), p);
  }
  HEED_CHECK(x.cols() == layer.in(), "linear: x must have as many columns as the weight");
  HEED_CHECK(!layer.bias || layer.bias.value.cols == layer.out(),
             "linear: the bias must have one number for each output");
  const int64_t rows = x.rows(), out = layer.out();
  Var y = ctx.activation(rows, out);
  if (layer.weight.packed) {
    packed_linear(ctx, x.value, layer, {.activation = activation}, y.value);
    return y;
  }
  // The matmul writes to y; only an activation whose derivative needs its input keeps the sum apart.
  const bool keep_sum = ctx.tape && kernels::backward_needs_input(activation);
  const Mat sum = keep_sum ? ctx.matrix(rows, out) : y.value;
  weight_matmul(ctx, x.value, layer, sum);
  if (layer.bias || activation != Activation::none) {
    ctx.parallel(rows, row_grain(out), [&](int64_t begin, int64_t end) {
      kernels::bias_activation({.x = sum.row(begin),
                                .bias = layer.bias ? layer.bias.value.data : nullptr,
                                .activation = activation,
                                .sum = keep_sum ? sum.row(begin) : nullptr,
                                .y = y.value.row(begin),
                                .rows = end - begin,
                                .cols = out});
    });
  }
  const bool drops = ctx.tape && p > 0;
  const kernels::Dropout drop{drops ? ctx.next_site() : RandomKey{}, drops ? p : 0};
  if (drops) {
    ctx.parallel(y.value.size(), kElementGrain, [&](int64_t begin, int64_t end) {
      float* at = y.value.data + begin;
      kernels::dropout(drop, begin, at, at, end - begin);
    });
  }
  if (ctx.tape) {
    ctx.tape->record(y.gradient,
                     Record{y.gradient, x.gradient, layer, activation, x.value, sum, drop});
    keep_value(x);
    if (activation != Activation::none && !keep_sum) keep_value(y);
  }
  return y;
}

Var linear_add(Ctx& ctx, Var residual, Var x, const Linear& layer, float p) {
  if (!layer.weight.packed) return residual_add(ctx, residual, linear(ctx, x, layer), p);
  check_dropout(p);
  HEED_CHECK(
      x.cols() == layer.in() && residual.rows() == x.rows() && residual.cols() == layer.out(),
      "linear_add: x must fit the weight, and residual its output");
  Var y = ctx.activation(residual.rows(), residual.cols());
  packed_linear(ctx, x.value, layer, {.residual = residual.value}, y.value);
  return y;
}

}  // namespace heed
