#include <algorithm>
#include <string>

#include "kernels/rows/elementwise.h"
#include "kernels/rows/softmax.h"
#include "ops/ops.h"
#include "ops/row_sums.h"
#include "ops/weight_gradient.h"
#include "ops/weight_matmul.h"

namespace heed {
namespace {

// A tile's logits are read and written several times, so they should stay near the cores; but each
// tile also passes once over the output matrix and its gradient, so few tiles are better. At 8 Mi
// logits, 32 MB, the second cost is small for vocabularies from 60 to 250,000.
constexpr int64_t kTileLogits = 8 << 20;
constexpr int64_t kMinTileRows = 128;

int64_t tile_rows(int64_t rows, int64_t vocabulary) {
  const int64_t fit = std::max(kTileLogits / std::max<int64_t>(vocabulary, 1), kMinTileRows);
  const int64_t tiles = std::max<int64_t>((rows + fit - 1) / fit, 1);
  return std::max<int64_t>((rows + tiles - 1) / tiles, 1);  // tiles of about the same size
}

struct RowSpan {
  int64_t begin, end;
  int64_t rows() const { return end - begin; }
};

// logits = x Wᵀ + b for a tile of rows.
void tile_logits(Ctx& ctx, ConstMat x, const Linear& output, RowSpan tile, Mat logits) {
  weight_matmul(ctx, {x.row(tile.begin), tile.rows(), x.cols, x.stride}, output, logits);
  if (!output.bias) return;
  ctx.parallel(tile.rows(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      kernels::add(output.bias.value.data, logits.row(r), logits.cols);
    }
  });
}

// Where the gradients of a loss over the vocabulary go; all empty without a tape.
struct Targets {
  GradientTarget dx, dw, db;

  Targets(Ctx& ctx, const Var& x, const Linear& output) {
    if (!ctx.tape) return;
    if (x.gradient) dx = ctx.tape->target(ctx, *x.gradient);
    if (output.weight.gradient) dw = gradient_target(ctx, output.weight);
    if (output.bias && output.bias.gradient) db = gradient_target(ctx, output.bias);
  }
};

// dX = dZ W,  dW += dZᵀ X,  db += Σ dZ for a tile whose logits have become dZ.
void tile_backward(Ctx& ctx, ConstMat x, const Linear& output, RowSpan tile, Mat dz,
                   Targets& targets) {
  const ConstMat w = output.weight.value;
  if (targets.dx.value.cols > 0) {
    ctx.gemm({.m = tile.rows(),
              .n = x.cols,
              .k = dz.cols,
              .a = dz.data,
              .lda = dz.stride,
              .b = w.data,
              .ldb = w.stride,
              .c = targets.dx.value.row(tile.begin),
              .ldc = targets.dx.value.stride,
              .accumulate = targets.dx.accumulate});
  }
  if (targets.dw.value.cols > 0) {
    ctx.gemm({.transpose_a = true,
              .m = dz.cols,
              .n = x.cols,
              .k = tile.rows(),
              .a = dz.data,
              .lda = dz.stride,
              .b = x.row(tile.begin),
              .ldb = x.stride,
              .c = targets.dw.value.data,
              .ldc = targets.dw.value.stride,
              .accumulate = targets.dw.accumulate});
    targets.dw.accumulate = true;  // for the next tile
  }
  if (targets.db.value.cols > 0) {
    ctx.parallel(dz.cols, column_grain(256), [&](int64_t begin, int64_t end) {
      kernels::column_sum({.x = dz.data + begin,
                           .stride = dz.stride,
                           .sum = targets.db.value.data + begin,
                           .accumulate = targets.db.accumulate,
                           .rows = tile.rows(),
                           .cols = end - begin});
    });
    targets.db.accumulate = true;
  }
}

void check_output(const Var& x, const Linear& output) {
  HEED_CHECK(x.cols() == output.in(), "loss: x must have the width of the output matrix");
  HEED_CHECK(!output.bias || output.bias.value.cols == output.out(),
             "loss: the bias must have one number for each token");
}

// The loss of all rows, tile by tile. row_loss(tile, logits, losses) replaces a tile of logits by
// the losses of its rows and, with a tape, into gradients.
template <class RowLoss>
double sum_over_tiles(Ctx& ctx, const Var& x, const Linear& output, const RowLoss& row_loss) {
  check_output(x, output);
  if (x.rows() == 0) return 0;  // nothing contributes, so no gradient may count as written
  const int64_t rows = x.rows(), vocabulary = output.out();
  const int64_t height = tile_rows(rows, vocabulary);
  Targets targets(ctx, x, output);
  const Scratch buffer(ctx, height * vocabulary), losses(ctx, std::max<int64_t>(rows, 1));
  for (int64_t begin = 0; begin < rows; begin += height) {
    const RowSpan tile{begin, std::min(begin + height, rows)};
    const Mat logits(buffer.data(), tile.rows(), vocabulary);
    tile_logits(ctx, x.value, output, tile, logits);
    row_loss(tile, logits, losses.data());
    if (ctx.tape) tile_backward(ctx, x.value, output, tile, logits, targets);
  }
  return ctx.measuring() ? 0 : row_sum(losses.data(), rows);
}

}  // namespace

LossSum vocabulary_cross_entropy(Ctx& ctx, Var x, const Linear& output,
                                 std::span<const int32_t> labels,
                                 const CrossEntropyOptions& options) {
  check_options(options);
  const int64_t counted = check_labels(labels, x.rows(), output.out());
  const double sum = sum_over_tiles(ctx, x, output, [&](RowSpan tile, Mat logits, float* losses) {
    ctx.parallel(tile.rows(), 1, [&](int64_t begin, int64_t end) {
      kernels::cross_entropy({.logits = logits.row(begin),
                              .stride = logits.stride,
                              .labels = labels.data() + tile.begin + begin,
                              .label_smoothing = options.label_smoothing,
                              .soft_cap = options.soft_cap,
                              .gradient_scale = options.gradient_scale,
                              .gradient = ctx.training(),
                              .loss = losses + tile.begin + begin,
                              .rows = end - begin,
                              .cols = logits.cols});
    });
  });
  return {sum, counted};
}

LossSum vocabulary_kl_divergence(Ctx& ctx, Var x, const Linear& output, const Teacher& teacher,
                                 const DistillationOptions& options) {
  HEED_CHECK(teacher.x.rows == x.rows() && teacher.output.out() == output.out(),
             "distillation: teacher and student must have the same rows and vocabulary");
  HEED_CHECK(teacher.x.cols == teacher.output.in(),
             "distillation: the teacher's x must have the width of its output matrix");
  const int64_t height = tile_rows(x.rows(), output.out());
  const Scratch buffer(ctx, height * output.out());
  const double sum = sum_over_tiles(ctx, x, output, [&](RowSpan tile, Mat logits, float* losses) {
    const Mat teacher_logits(buffer.data(), tile.rows(), logits.cols);
    tile_logits(ctx, teacher.x, teacher.output, tile, teacher_logits);
    ctx.parallel(tile.rows(), 1, [&](int64_t begin, int64_t end) {
      kernels::kl_divergence({.student = logits.row(begin),
                              .teacher = teacher_logits.row(begin),
                              .stride = logits.stride,
                              .temperature = options.temperature,
                              .gradient_scale = options.gradient_scale,
                              .gradient = ctx.training(),
                              .loss = losses + tile.begin + begin,
                              .rows = end - begin,
                              .cols = logits.cols});
    });
  });
  return {sum, x.rows()};
}

TwinLoss vocabulary_twin_cross_entropy(Ctx& ctx, Var x, const Linear& output,
                                       std::span<const int32_t> labels, float divergence_weight,
                                       const CrossEntropyOptions& options) {
  check_options(options);
  check_output(x, output);
  HEED_CHECK(options.soft_cap == 0, "R-Drop: soft_cap must be 0");
  HEED_CHECK(x.rows() % 2 == 0, "R-Drop: the number of rows must be even");
  const int64_t counted = check_labels(labels, x.rows(), output.out());
  const int64_t pairs = x.rows() / 2, vocabulary = output.out();
  HEED_CHECK(std::equal(labels.begin(), labels.begin() + pairs, labels.begin() + pairs),
             "R-Drop: both rows of a pair must have the same label");
  if (pairs == 0) return {};  // as above
  const int64_t height = (tile_rows(x.rows(), vocabulary) + 1) / 2;
  Targets targets(ctx, x, output);
  const Scratch buffer(ctx, 2 * height * vocabulary), losses(ctx, pairs), divergences(ctx, pairs);
  for (int64_t begin = 0; begin < pairs; begin += height) {
    const RowSpan tile{begin, std::min(begin + height, pairs)};
    const RowSpan twin{pairs + tile.begin, pairs + tile.end};
    const Mat first(buffer.data(), tile.rows(), vocabulary);
    const Mat second(buffer.data() ? buffer.data() + height * vocabulary : nullptr, tile.rows(),
                     vocabulary);
    tile_logits(ctx, x.value, output, tile, first);
    tile_logits(ctx, x.value, output, twin, second);
    ctx.parallel(tile.rows(), 1, [&](int64_t from, int64_t to) {
      kernels::twin_cross_entropy({.first = first.row(from),
                                   .second = second.row(from),
                                   .stride = first.stride,
                                   .labels = labels.data() + tile.begin + from,
                                   .label_smoothing = options.label_smoothing,
                                   .divergence_weight = divergence_weight,
                                   .gradient_scale = options.gradient_scale,
                                   .gradient = ctx.training(),
                                   .loss = losses.data() + tile.begin + from,
                                   .divergence = divergences.data() + tile.begin + from,
                                   .rows = to - from,
                                   .cols = vocabulary});
    });
    if (!ctx.tape) continue;
    tile_backward(ctx, x.value, output, tile, first, targets);
    tile_backward(ctx, x.value, output, twin, second, targets);
  }
  TwinLoss result{{0, counted}, {0, counted / 2}};
  if (ctx.measuring()) return result;
  result.labels.sum = row_sum(losses.data(), pairs);
  result.divergence.sum = row_sum(divergences.data(), pairs);
  return result;
}

}  // namespace heed
