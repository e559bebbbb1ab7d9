#include <algorithm>

#include "kernels/rows/elementwise.h"
#include "ops/ops.h"

namespace heed {
namespace {

// The rows of sequence s that its pooled row is made of.
struct RowSpan {
  int64_t begin, end;
};
RowSpan pooled_rows(const int32_t* offsets, int64_t s, Pooling pooling) {
  const int64_t begin = offsets[s], end = offsets[s + 1];
  switch (pooling) {
    case Pooling::first:
      return {begin, begin + 1};
    case Pooling::last:
      return {end - 1, end};
    case Pooling::mean:
      return {begin, end};
  }
  return {begin, end};
}

struct Record {
  Gradient *out, *x;
  const int32_t* offsets;
  Pooling pooling;

  // d_x[r] += d_y[s] / n for the n rows that were pooled.
  void backward(Ctx& ctx) {
    const Mat dy = ctx.tape->arrived(ctx, *out);
    const GradientTarget dx = ctx.tape->target(ctx, *x);
    ctx.parallel(dy.rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        if (!dx.accumulate) {
          for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r) {
            std::fill_n(dx.value.row(r), dx.value.cols, 0.0f);
          }
        }
        const RowSpan rows = pooled_rows(offsets, s, pooling);
        const float share = 1.0f / static_cast<float>(rows.end - rows.begin);
        for (int64_t r = rows.begin; r < rows.end; ++r) {
          kernels::multiply_add(share, dy.row(s), dx.value.row(r), dy.cols);
        }
      }
    });
  }
};

}  // namespace

Var pool(Ctx& ctx, Var x, std::span<const int32_t> offsets, Pooling pooling) {
  check_offsets(offsets, x.rows());
  const auto sequences = static_cast<int64_t>(offsets.size()) - 1;
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    HEED_CHECK(offsets[s] < offsets[s + 1], "pool: a sequence must not be empty");
  }
  Var y = ctx.activation(sequences, x.cols());
  ctx.parallel(sequences, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const RowSpan rows = pooled_rows(offsets.data(), s, pooling);
      std::copy_n(x.value.row(rows.begin), y.cols(), y.value.row(s));
      for (int64_t r = rows.begin + 1; r < rows.end; ++r) {
        kernels::add(x.value.row(r), y.value.row(s), y.cols());
      }
      const auto count = static_cast<float>(rows.end - rows.begin);
      kernels::scale(1.0f / count, y.value.row(s), y.value.row(s), y.cols());
    }
  });
  if (ctx.tape && x.gradient) {
    ctx.tape->record(y.gradient, Record{y.gradient, x.gradient, offsets.data(), pooling});
  }
  return y;
}

}  // namespace heed
