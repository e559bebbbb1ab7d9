#include <algorithm>
#include <cmath>

#include "kernels/rows/elementwise.h"
#include "kernels/rows/softmax.h"
#include "ops/ops.h"
#include "ops/row_sums.h"

namespace heed {
namespace {

// Writes `from` to the gradient of an input, or adds it.
void deposit(const float* from, const GradientTarget& to, int64_t row) {
  if (to.accumulate) {
    kernels::add(from, to.value.row(row), to.value.cols);
  } else {
    std::copy_n(from, to.value.cols, to.value.row(row));
  }
}

// Calls row_loss(row, gradient) → loss for each row, where `gradient` has room for the row's
// gradient (null without a tape), and sums the losses.
template <class RowLoss>
double sum_over_rows(Ctx& ctx, const Var& x, const RowLoss& row_loss) {
  const bool backward = ctx.tape && x.gradient;
  const GradientTarget dx = backward ? ctx.tape->target(ctx, *x.gradient) : GradientTarget{};
  const Scratch losses(ctx, std::max<int64_t>(x.rows(), 1));
  const Scratch gradients(ctx, std::max<int64_t>(backward ? x.value.size() : 0, 1));
  ctx.parallel(x.rows(), row_grain(x.cols()), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* gradient = backward ? gradients.data() + r * x.cols() : nullptr;
      losses.data()[r] = row_loss(r, gradient);
      if (backward) deposit(gradient, dx, r);
    }
  });
  return ctx.measuring() ? 0 : row_sum(losses.data(), x.rows());
}

}  // namespace

LossSum cross_entropy(Ctx& ctx, Var logits, std::span<const int32_t> labels,
                      const CrossEntropyOptions& options) {
  check_options(options);
  const int64_t counted = check_labels(labels, logits.rows(), logits.cols());
  const int64_t classes = logits.cols();
  const bool backward = ctx.tape && logits.gradient;
  const Scratch copies(ctx, std::max<int64_t>(backward ? 0 : logits.value.size(), 1));
  const double sum = sum_over_rows(ctx, logits, [&](int64_t r, float* gradient) {
    // The kernel overwrites its logits with their gradient, so it is given a copy.
    float* row = gradient ? gradient : copies.data() + r * classes;
    std::copy_n(logits.value.row(r), classes, row);
    float loss = 0;
    kernels::cross_entropy({.logits = row,
                            .stride = classes,
                            .labels = labels.data() + r,
                            .label_smoothing = options.label_smoothing,
                            .soft_cap = options.soft_cap,
                            .gradient_scale = options.gradient_scale,
                            .gradient = gradient != nullptr,
                            .loss = &loss,
                            .rows = 1,
                            .cols = classes});
    return loss;
  });
  return {sum, counted};
}

// mean over the width of (x - t)²;  d/dx = 2 (x - t) / width.
LossSum squared_error(Ctx& ctx, Var x, ConstMat target, float gradient_scale) {
  HEED_CHECK(target.rows == x.rows() && target.cols == x.cols(),
             "squared_error: target must have the shape of x");
  const auto width = static_cast<float>(x.cols());
  const double sum = sum_over_rows(ctx, x, [&](int64_t r, float* gradient) {
    const float *xs = x.value.row(r), *ts = target.row(r);
    double total = 0;
    for (int64_t c = 0; c < x.cols(); ++c) {
      const double difference = double{xs[c]} - ts[c];
      total += difference * difference;
      if (gradient) gradient[c] = gradient_scale * 2 * static_cast<float>(difference) / width;
    }
    return static_cast<float>(total / width);
  });
  return {sum, x.rows()};
}

// 1 - x·t / (|x| |t|);  d/dx = -(t / (|x| |t|) - x (x·t) / (|x|³ |t|)).
LossSum cosine_distance(Ctx& ctx, Var x, ConstMat target, float gradient_scale) {
  HEED_CHECK(target.rows == x.rows() && target.cols == x.cols(),
             "cosine_distance: target must have the shape of x");
  constexpr double kTiny = 1e-12;  // a zero vector has no direction: cosine 0, no gradient
  const double sum = sum_over_rows(ctx, x, [&](int64_t r, float* gradient) {
    const float *xs = x.value.row(r), *ts = target.row(r);
    const double xx = kernels::sum_of_squares(xs, x.cols());
    const double tt = kernels::sum_of_squares(ts, x.cols());
    const double norms = std::sqrt(xx * tt);
    const double cosine = norms > kTiny ? kernels::dot(xs, ts, x.cols()) / norms : 0;
    for (int64_t c = 0; gradient && c < x.cols(); ++c) {
      gradient[c] =
          norms > kTiny
              ? static_cast<float>(-gradient_scale * (ts[c] / norms - xs[c] * cosine / xx))
              : 0;
    }
    return static_cast<float>(1 - cosine);
  });
  return {sum, x.rows()};
}

}  // namespace heed
