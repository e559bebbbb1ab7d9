#include "ops/ops.h"

namespace heed {
namespace {

struct Record {
  Gradient *out, *gate_gradient, *up_gradient;
  Activation activation;
  ConstMat gate, up;

  // d_gate = d_y ∘ up ∘ activation'(gate);  d_up = d_y ∘ activation(gate).
  void backward(Ctx& ctx) {
    const Mat dy = ctx.tape->arrived(ctx, *out);
    const GradientTarget d_gate = ctx.tape->target(ctx, *gate_gradient);
    const GradientTarget d_up = ctx.tape->target(ctx, *up_gradient);
    HEED_CHECK(d_gate.accumulate == d_up.accumulate && d_gate.value.stride == d_up.value.stride,
               "gated: gate and up must have gradients of the same layout");
    ctx.parallel(dy.rows, row_grain(dy.cols), [&](int64_t begin, int64_t end) {
      kernels::gated_activation_backward({.activation = activation,
                                          .gate = gate.row(begin),
                                          .up = up.row(begin),
                                          .input_stride = gate.stride,
                                          .dy = dy.row(begin),
                                          .dgate = d_gate.value.row(begin),
                                          .dup = d_up.value.row(begin),
                                          .gradient_stride = d_gate.value.stride,
                                          .accumulate = d_gate.accumulate,
                                          .rows = end - begin,
                                          .cols = dy.cols});
    });
  }
};

}  // namespace

Var gated(Ctx& ctx, Var gate, Var up, Activation activation) {
  HEED_CHECK(
      gate.rows() == up.rows() && gate.cols() == up.cols() && gate.value.stride == up.value.stride,
      "gated: gate and up must have the same shape");
  Var y = ctx.activation(gate.rows(), gate.cols());
  ctx.parallel(y.rows(), row_grain(y.cols()), [&](int64_t begin, int64_t end) {
    kernels::gated_activation({.activation = activation,
                               .gate = gate.value.row(begin),
                               .up = up.value.row(begin),
                               .input_stride = gate.value.stride,
                               .y = y.value.row(begin),
                               .rows = end - begin,
                               .cols = y.cols()});
  });
  if (ctx.tape) {
    HEED_CHECK(gate.gradient && up.gradient, "gated: both inputs must have a gradient");
    ctx.tape->record(y.gradient, Record{y.gradient, gate.gradient, up.gradient, activation,
                                        gate.value, up.value});
    keep_value(gate);
    keep_value(up);
  }
  return y;
}

}  // namespace heed
