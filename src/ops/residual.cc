#include <algorithm>

#include "kernels/rows/dropout.h"
#include "kernels/rows/elementwise.h"
#include "ops/ops.h"

namespace heed {
namespace {

struct AddRecord {
  Gradient *out, *x, *branch;
  kernels::Dropout drop;

  // d_branch += dropout(d_out);  d_x += d_out.
  void backward(Ctx& ctx) {
    const Mat dy = ctx.tape->arrived(ctx, *out);
    if (branch) {
      const GradientTarget to = ctx.tape->target(ctx, *branch);
      HEED_CHECK(to.value.contiguous(), "residual_add: the branch must be contiguous");
      ctx.parallel(dy.size(), kElementGrain, [&](int64_t begin, int64_t end) {
        const float* from = dy.data + begin;
        float* at = to.value.data + begin;
        if (to.accumulate) {
          kernels::dropout_add(drop, begin, from, at, at, end - begin);
        } else if (drop.p > 0) {
          kernels::dropout(drop, begin, from, at, end - begin);
        } else {
          std::copy_n(from, end - begin, at);
        }
      });
    }
    if (x) ctx.tape->pass(ctx, *out, *x);
  }
};

struct DropoutRecord {
  Gradient *out, *x;
  kernels::Dropout drop;

  void backward(Ctx& ctx) {
    const Mat dy = ctx.tape->arrived(ctx, *out);
    ctx.parallel(dy.size(), kElementGrain, [&](int64_t begin, int64_t end) {
      kernels::dropout(drop, begin, dy.data + begin, dy.data + begin, end - begin);
    });
    ctx.tape->pass(ctx, *out, *x);
  }
};

}  // namespace

Var residual_add(Ctx& ctx, Var x, Var branch, float p) {
  HEED_CHECK(x.rows() == branch.rows() && x.cols() == branch.cols(),
             "residual_add: x and branch must have the same shape");
  HEED_CHECK(x.value.contiguous() && branch.value.contiguous(),
             "residual_add: x and branch must be contiguous");
  check_dropout(p);
  Var y = ctx.in_place(branch);
  const bool drops = ctx.tape && p > 0;
  const kernels::Dropout drop{drops ? ctx.next_site() : RandomKey{}, drops ? p : 0};
  ctx.parallel(y.value.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    const float* from = branch.value.data + begin;
    float* at = y.value.data + begin;
    if (drops) {
      kernels::dropout_add(drop, begin, from, x.value.data + begin, at, end - begin);
    } else {
      if (from != at) std::copy_n(from, end - begin, at);
      kernels::add(x.value.data + begin, at, end - begin);
    }
  });
  if (ctx.tape) {
    ctx.tape->record(y.gradient, AddRecord{y.gradient, x.gradient, branch.gradient, drop});
  }
  return y;
}

Var dropout(Ctx& ctx, Var x, float p) {
  check_dropout(p);
  if (!ctx.tape || p == 0) return x;
  HEED_CHECK(x.value.contiguous(), "dropout: x must be contiguous");
  const kernels::Dropout drop{ctx.next_site(), p};
  Var y = ctx.in_place(x);
  ctx.parallel(y.value.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    kernels::dropout(drop, begin, x.value.data + begin, y.value.data + begin, end - begin);
  });
  if (x.gradient) ctx.tape->record(y.gradient, DropoutRecord{y.gradient, x.gradient, drop});
  return y;
}

}  // namespace heed
