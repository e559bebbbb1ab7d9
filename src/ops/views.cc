#include <algorithm>
#include <string>

#include "kernels/rows/elementwise.h"
#include "kernels/rows/embedding.h"
#include "ops/ops.h"

namespace heed {
namespace {

constexpr size_t kMaxSlices = 3;

struct SplitRecord {
  Gradient* whole;
  std::array<Gradient*, kMaxSlices> slices;
  size_t count;

  // The slices' gradients are already adjacent; a slice without a gradient is zero.
  void backward(Ctx& ctx) {
    HEED_CHECK(!whole->written, "split: the whole matrix must not be used beside its slices");
    if (whole->buffer < 0) return;
    for (size_t i = 0; i < count; ++i) {
      if (slices[i]->written) continue;
      const Mat zero = ctx.tape->target(ctx, *slices[i]).value;
      ctx.parallel(zero.rows, row_grain(zero.cols), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) std::fill_n(zero.row(r), zero.cols, 0.0f);
      });
    }
    whole->written = true;
  }
};

struct ScaleRecord {
  Gradient *out, *x;
  float factor;

  void backward(Ctx& ctx) {
    const Mat dy = ctx.tape->arrived(ctx, *out);
    ctx.parallel(dy.rows, row_grain(dy.cols), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) kernels::scale(factor, dy.row(r), dy.row(r), dy.cols);
    });
    ctx.tape->pass(ctx, *out, *x);
  }
};

struct TakeRowsRecord {
  Gradient *out, *x;
  const int32_t* indices;

  // d_x[indices[r]] += d_y[r]
  void backward(Ctx& ctx) {
    const Mat dy = ctx.tape->arrived(ctx, *out);
    const GradientTarget to = ctx.tape->target(ctx, *x);
    ctx.parallel(dy.cols, column_grain(16), [&](int64_t begin, int64_t end) {
      if (!to.accumulate) {
        for (int64_t r = 0; r < to.value.rows; ++r) {
          std::fill_n(to.value.row(r) + begin, end - begin, 0.0f);
        }
      }
      kernels::scatter_add_rows({.dy = dy.data + begin,
                                 .stride = dy.stride,
                                 .ids = indices,
                                 .scale = 1,
                                 .dtable = to.value.data + begin,
                                 .table_stride = to.value.stride,
                                 .rows = dy.rows,
                                 .cols = end - begin});
    });
  }
};

struct PutRowsRecord {
  Gradient *out, *x, *rows;
  const int32_t* indices;

  // d_rows[i] += d_y[indices[i]];  d_x += d_y, but 0 in the rows that were replaced.
  void backward(Ctx& ctx) {
    const Mat dy = ctx.tape->arrived(ctx, *out);
    const GradientTarget to = ctx.tape->target(ctx, *rows);
    ctx.parallel(to.value.rows, row_grain(dy.cols), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        float* from = dy.row(indices[r]);
        if (to.accumulate) {
          kernels::add(from, to.value.row(r), dy.cols);
        } else {
          std::copy_n(from, dy.cols, to.value.row(r));
        }
        std::fill_n(from, dy.cols, 0.0f);
      }
    });
    ctx.tape->pass(ctx, *out, *x);
  }
};

void check_rows(std::span<const int32_t> indices, int64_t rows) {
  for (const int32_t index : indices) {
    HEED_CHECK(index >= 0 && index < rows, "take_rows, put_rows: an index must be less than " +
                                               std::to_string(rows) + ", got " +
                                               std::to_string(index));
  }
}

}  // namespace

template <size_t n>
std::array<Var, n> split(Ctx& ctx, Var x, const std::array<int64_t, n>& widths) {
  static_assert(n <= kMaxSlices);
  std::array<Var, n> slices;
  SplitRecord record{x.gradient, {}, n};
  int64_t column = 0;
  for (size_t i = 0; i < n; ++i) {
    slices[i].value = x.value.columns(column, widths[i]);
    slices[i].value_kept = x.value_kept;
    if (ctx.tape && x.gradient) {
      Gradient* g = ctx.tape->gradient(x.rows(), widths[i]);
      g->whole = x.gradient, g->first_column = column;
      slices[i].gradient = record.slices[i] = g;
    }
    column += widths[i];
  }
  HEED_CHECK(column == x.cols(), "split: the widths must add up to the width of x");
  if (ctx.tape && x.gradient) ctx.tape->record(nullptr, record);
  return slices;
}
template std::array<Var, 2> split(Ctx&, Var, const std::array<int64_t, 2>&);
template std::array<Var, 3> split(Ctx&, Var, const std::array<int64_t, 3>&);

Var scale(Ctx& ctx, Var x, float factor) {
  Var y = ctx.in_place(x);
  ctx.parallel(y.rows(), row_grain(y.cols()), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      kernels::scale(factor, x.value.row(r), y.value.row(r), y.cols());
    }
  });
  if (ctx.tape && x.gradient)
    ctx.tape->record(y.gradient, ScaleRecord{y.gradient, x.gradient, factor});
  return y;
}

Var take_rows(Ctx& ctx, Var x, std::span<const int32_t> indices) {
  check_rows(indices, x.rows());
  Var y = ctx.activation(static_cast<int64_t>(indices.size()), x.cols());
  ctx.parallel(y.rows(), row_grain(y.cols()), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::copy_n(x.value.row(indices[static_cast<size_t>(r)]), y.cols(), y.value.row(r));
    }
  });
  if (ctx.tape && x.gradient) {
    ctx.tape->record(y.gradient, TakeRowsRecord{y.gradient, x.gradient, indices.data()});
  }
  return y;
}

Var put_rows(Ctx& ctx, Var x, Var rows, std::span<const int32_t> indices) {
  HEED_CHECK(rows.cols() == x.cols() && rows.rows() == static_cast<int64_t>(indices.size()),
             "put_rows: rows must have one row for each index");
  check_rows(indices, x.rows());
  Var y = ctx.in_place(x);
  if (y.value.data != x.value.data) {
    ctx.parallel(x.rows(), row_grain(x.cols()), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        std::copy_n(x.value.row(r), x.cols(), y.value.row(r));
      }
    });
  }
  ctx.parallel(rows.rows(), row_grain(x.cols()), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::copy_n(rows.value.row(r), x.cols(), y.value.row(indices[static_cast<size_t>(r)]));
    }
  });
  if (ctx.tape) {
    HEED_CHECK(x.gradient && rows.gradient, "put_rows: both inputs must have a gradient");
    ctx.tape->record(y.gradient,
                     PutRowsRecord{y.gradient, x.gradient, rows.gradient, indices.data()});
  }
  return y;
}

}  // namespace heed
