#include "kernels/rows/norm.h"

#include "kernels/rows/elementwise.h"
#include "ops/ops.h"
#include "ops/weight_gradient.h"

namespace heed {
namespace {

// Rows whose share of dγ and dβ is summed by one thread. Fixed, so that the sums have one order.
constexpr int64_t kChunkRows = 64;

struct Record {
  Gradient *out, *in;
  Norm norm;
  ConstMat x;
  const float* mean;  // [rows]; null for rms_norm
  const float* rstd;

  void backward(Ctx& ctx);
  void backward_rows(int64_t first, int64_t rows, ConstMat dy, const GradientTarget& dx,
                     float* d_gamma, float* d_beta) const;
};

void Record::backward_rows(int64_t first, int64_t rows, ConstMat dy, const GradientTarget& dx,
                           float* d_gamma, float* d_beta) const {
  if (norm.kind == NormKind::layer_norm) {
    kernels::layer_norm_backward({.x = x.row(first),
                                  .gamma = norm.gamma.value.data,
                                  .mean = mean + first,
                                  .rstd = rstd + first,
                                  .dy = dy.row(first),
                                  .dx = dx.value.row(first),
                                  .accumulate = dx.accumulate,
                                  .dgamma = d_gamma,
                                  .dbeta = d_beta,
                                  .rows = rows,
                                  .cols = x.cols});
  } else {
    kernels::rms_norm_backward({.x = x.row(first),
                                .gamma = norm.gamma.value.data,
                                .gamma_offset = norm.gamma_offset,
                                .rstd = rstd + first,
                                .dy = dy.row(first),
                                .dx = dx.value.row(first),
                                .accumulate = dx.accumulate,
                                .dgamma = d_gamma,
                                .rows = rows,
                                .cols = x.cols});
  }
}

// dx as the kernels state it. dγ and dβ are summed chunk by chunk of rows, then over the chunks.
void Record::backward(Ctx& ctx) {
  const Mat dy = ctx.tape->arrived(ctx, *out);
  const Scratch unwanted(ctx, in ? 1 : x.size());  // the kernels always make dx
  const GradientTarget dx =
      in ? ctx.tape->target(ctx, *in) : GradientTarget{Mat(unwanted.data(), x.rows, x.cols)};
  const int64_t chunks = (x.rows + kChunkRows - 1) / kChunkRows, width = x.cols;
  const bool has_beta = static_cast<bool>(norm.beta);
  const int64_t sums = has_beta ? 2 : 1;
  const Scratch partial(ctx, chunks * sums * width);  // [chunks, γ | β]
  ctx.parallel(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kChunkRows;
      float* d_gamma = partial.data() + chunk * sums * width;
      std::fill_n(d_gamma, sums * width, 0.0f);
      backward_rows(first, std::min(kChunkRows, x.rows - first), dy, dx, d_gamma,
                    has_beta ? d_gamma + width : nullptr);
    }
  });
  const auto sum_chunks = [&](const Weight& weight, int64_t column) {
    if (!weight.gradient) return;
    const GradientTarget target = gradient_target(ctx, weight);
    if (ctx.measuring()) return;
    kernels::column_sum({.x = partial.data() + column,
                         .stride = sums * width,
                         .sum = target.value.data,
                         .accumulate = target.accumulate,
                         .rows = chunks,
                         .cols = width});
  };
  sum_chunks(norm.gamma, 0);
  if (has_beta) sum_chunks(norm.beta, width);
}

}  // namespace

Var norm(Ctx& ctx, Var x, const Norm& norm) {
  HEED_CHECK(x.value.contiguous(), "norm: a strided input");
  HEED_CHECK(norm.gamma.value.cols == x.cols(), "norm: gamma of another width");
  HEED_CHECK(!norm.beta || (norm.kind == NormKind::layer_norm && norm.beta.value.cols == x.cols()),
             "norm: beta of another width, or with an RMS norm");
  const int64_t rows = x.rows(), width = x.cols();
  const bool layer = norm.kind == NormKind::layer_norm;
  Var y = ctx.activation(rows, width);
  float* mean = ctx.tape && layer ? ctx.matrix(1, rows).data : nullptr;
  float* rstd = ctx.tape ? ctx.matrix(1, rows).data : nullptr;
  ctx.parallel(rows, row_grain(width), [&](int64_t begin, int64_t end) {
    if (layer) {
      kernels::layer_norm({.x = x.value.row(begin),
                           .gamma = norm.gamma.value.data,
                           .beta = norm.beta ? norm.beta.value.data : nullptr,
                           .y = y.value.row(begin),
                           .mean = mean ? mean + begin : nullptr,
                           .rstd = rstd ? rstd + begin : nullptr,
                           .rows = end - begin,
                           .cols = width,
                           .eps = norm.eps});
    } else {
      kernels::rms_norm({.x = x.value.row(begin),
                         .gamma = norm.gamma.value.data,
                         .gamma_offset = norm.gamma_offset,
                         .y = y.value.row(begin),
                         .rstd = rstd ? rstd + begin : nullptr,
                         .rows = end - begin,
                         .cols = width,
                         .eps = norm.eps});
    }
  });
  if (ctx.tape) {
    ctx.tape->record(y.gradient, Record{y.gradient, x.gradient, norm, x.value, mean, rstd});
    keep_value(x);
  }
  return y;
}

}  // namespace heed
