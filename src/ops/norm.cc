#include "kernels/rows/norm.h"

#include "kernels/rows/elementwise.h"
#include "ops/ops.h"
#include "ops/weight_gradient.h"

namespace heed {
namespace {

// Rows whose share of dγ and dβ is summed by one thread. Fixed, so that the sums have one order.
constexpr int64_t kChunkRows = 64;

// A norm of each head's columns; norm() is the case of one head.
struct Heads {
  int64_t count = 1, dim = 0;

  // Calls body(first row, rows, kernel rows) such that the heads of these rows are contiguous: all
  // rows at once, or one by one where a matrix is a slice of a wider one.
  template <class Body>
  void for_each_block(bool contiguous, int64_t first, int64_t rows, const Body& body) const {
    const int64_t step = contiguous ? rows : 1;
    for (int64_t r = first; r < first + rows; r += step) body(r, step * count);
  }
};

struct Record {
  Gradient *out, *in;
  Norm norm;
  ConstMat x;
  Heads heads;
  const float* mean;  // [rows, heads]; null for rms_norm
  const float* rstd;

  void backward(Ctx& ctx);
  void backward_rows(int64_t first, int64_t rows, ConstMat dy, const GradientTarget& dx,
                     float* d_gamma, float* d_beta) const;
};

void Record::backward_rows(int64_t first, int64_t rows, ConstMat dy, const GradientTarget& dx,
                           float* d_gamma, float* d_beta) const {
  const bool contiguous = x.contiguous() && dy.contiguous() && dx.value.contiguous();
  heads.for_each_block(contiguous, first, rows, [&](int64_t row, int64_t kernel_rows) {
    if (norm.kind == NormKind::layer_norm) {
      kernels::layer_norm_backward({.x = x.row(row),
                                    .gamma = norm.gamma.value.data,
                                    .mean = mean + row * heads.count,
                                    .rstd = rstd + row * heads.count,
                                    .dy = dy.row(row),
                                    .dx = dx.value.row(row),
                                    .accumulate = dx.accumulate,
                                    .dgamma = d_gamma,
                                    .dbeta = d_beta,
                                    .rows = kernel_rows,
                                    .cols = heads.dim});
    } else {
      kernels::rms_norm_backward({.x = x.row(row),
                                  .gamma = norm.gamma.value.data,
                                  .gamma_offset = norm.gamma_offset,
                                  .rstd = rstd + row * heads.count,
                                  .dy = dy.row(row),
                                  .dx = dx.value.row(row),
                                  .accumulate = dx.accumulate,
                                  .dgamma = d_gamma,
                                  .rows = kernel_rows,
                                  .cols = heads.dim});
    }
  });
}

// dx as the kernels state it. dγ and dβ are summed chunk by chunk of rows, then over the chunks.
void Record::backward(Ctx& ctx) {
  const Mat dy = ctx.tape->arrived(ctx, *out);
  const Scratch unused(ctx, in ? 1 : x.size());  // the kernels always write dx
  const GradientTarget dx =
      in ? ctx.tape->target(ctx, *in) : GradientTarget{Mat(unused.data(), x.rows, x.cols)};
  const int64_t chunks = (x.rows + kChunkRows - 1) / kChunkRows, width = heads.dim;
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

Var normalize(Ctx& ctx, Var x, const Norm& norm, const Heads& heads) {
  HEED_CHECK(norm.gamma.value.cols == heads.dim, "norm: gamma must have the width of x");
  HEED_CHECK(!norm.beta || (norm.kind == NormKind::layer_norm && norm.beta.value.cols == heads.dim),
             "norm: beta must have the width of x, and needs a layer norm");
  const int64_t rows = x.rows();
  const bool layer = norm.kind == NormKind::layer_norm;
  Var y = ctx.activation(rows, x.cols());
  float* mean = ctx.tape && layer ? ctx.matrix(1, rows * heads.count).data : nullptr;
  float* rstd = ctx.tape ? ctx.matrix(1, rows * heads.count).data : nullptr;
  ctx.parallel(rows, row_grain(x.cols()), [&](int64_t begin, int64_t end) {
    heads.for_each_block(
        x.value.contiguous(), begin, end - begin, [&](int64_t row, int64_t kernel_rows) {
          float* row_mean = mean ? mean + row * heads.count : nullptr;
          float* row_rstd = rstd ? rstd + row * heads.count : nullptr;
          if (layer) {
            kernels::layer_norm({.x = x.value.row(row),
                                 .gamma = norm.gamma.value.data,
                                 .beta = norm.beta ? norm.beta.value.data : nullptr,
                                 .y = y.value.row(row),
                                 .mean = row_mean,
                                 .rstd = row_rstd,
                                 .rows = kernel_rows,
                                 .cols = heads.dim,
                                 .eps = norm.eps});
          } else {
            kernels::rms_norm({.x = x.value.row(row),
                               .gamma = norm.gamma.value.data,
                               .gamma_offset = norm.gamma_offset,
                               .y = y.value.row(row),
                               .rstd = row_rstd,
                               .rows = kernel_rows,
                               .cols = heads.dim,
                               .eps = norm.eps});
          }
        });
  });
  if (ctx.tape) {
    ctx.tape->record(y.gradient, Record{y.gradient, x.gradient, norm, x.value, heads, mean, rstd});
    keep_value(x);
  }
  return y;
}

}  // namespace

Var norm(Ctx& ctx, Var x, const Norm& norm) {
  HEED_CHECK(x.value.contiguous(), "norm: x must be contiguous");
  return normalize(ctx, x, norm, {1, x.cols()});
}

Var head_norm(Ctx& ctx, Var x, const Norm& norm, int heads) {
  HEED_CHECK(heads > 0 && x.cols() % heads == 0, "head_norm: x must be [rows, heads · head_dim]");
  return normalize(ctx, x, norm, {heads, x.cols() / heads});
}

}  // namespace heed
