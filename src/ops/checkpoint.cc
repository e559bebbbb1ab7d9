#include "ops/checkpoint.h"

#include <algorithm>
#include <utility>

namespace heed::checkpoint_detail {
namespace {

void copy_rows(Ctx& ctx, const Mat& from, const Mat& to) {
  ctx.parallel(from.rows, row_grain(from.cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) std::copy_n(from.row(r), from.cols, to.row(r));
  });
}

// While it lives, ops record on another tape, in memory that is released at the end.
class InnerTape {
 public:
  explicit InnerTape(Ctx& ctx) : ctx_(ctx), outer_(ctx.tape), mark_(ctx.arena.mark()) {
    ctx.tape = &tape_;
  }
  ~InnerTape() {
    ctx_.tape = outer_;
    tape_.clear();
    ctx_.arena.rewind(mark_);
  }
  InnerTape(const InnerTape&) = delete;
  InnerTape& operator=(const InnerTape&) = delete;

  Tape& tape() { return tape_; }
  // The same value with a gradient on this tape. No op may overwrite it.
  Var input(const Var& x) {
    return {x.value, tape_.gradient(x.rows(), x.cols()), /*value_kept=*/true};
  }

 private:
  Ctx& ctx_;
  Tape tape_;
  Tape* outer_;
  Arena::Mark mark_;
};

// Recorded before the body, so it runs after it: copies an input's gradient to the outer tape.
struct CopyGradient {
  Gradient* inner;
  Mat outer;
  void backward(Ctx& ctx) { copy_rows(ctx, ctx.tape->arrived(ctx, *inner), outer); }
};

// An input of the recomputed body. Its gradient starts from what the outer tape already has, so
// that contributions are added in the order of an ordinary backward.
Var recomputed_input(Ctx& ctx, InnerTape& inner, const Var& x, const GradientTarget& outer) {
  const Var input = inner.input(x);
  inner.tape().record(input.gradient, CopyGradient{input.gradient, outer.value});
  if (outer.accumulate) {
    copy_rows(ctx, outer.value, inner.tape().target(ctx, *input.gradient).value);
  }
  return input;
}

}  // namespace

void Saved::backward(Ctx& ctx, const Body& body) const {
  // The outer tape's buffers first: what is allocated after them is released.
  const Mat dy = ctx.tape->arrived(ctx, *out);
  std::array<GradientTarget, kMaxCheckpointInputs> targets;
  // The bound that GCC 12 does not see, or it warns of a write beyond the arrays.
  const size_t used = std::min(count, kMaxCheckpointInputs);
  for (size_t i = 0; i < used; ++i) targets[i] = ctx.tape->target(ctx, *inputs[i].gradient);
  const uint32_t site_before = std::exchange(ctx.site, site);
  {
    InnerTape inner(ctx);
    std::array<Var, kMaxCheckpointInputs> recomputed;
    for (size_t i = 0; i < used; ++i) {
      recomputed[i] = recomputed_input(ctx, inner, inputs[i], targets[i]);
    }
    const Var y = body.call(body.object, ctx, std::span(recomputed).first(used));
    copy_rows(ctx, dy, inner.tape().target(ctx, *y.gradient).value);
    inner.tape().backward(ctx);
  }
  ctx.site = site_before;
}

Var forward(Ctx& ctx, std::span<const Var> inputs, const Body& body, Saved& saved) {
  HEED_CHECK(!inputs.empty() && inputs.size() <= kMaxCheckpointInputs,
             "checkpoint: the number of inputs must be between 1 and 4");
  const Var y = ctx.activation(inputs[0].rows(), inputs[0].cols());
  saved.count = inputs.size();
  saved.out = y.gradient;
  saved.site = ctx.site;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HEED_CHECK(inputs[i].gradient, "checkpoint: each input must have a gradient");
    keep_value(inputs[i]);
    saved.inputs[i] = inputs[i];
  }
  // With a tape, or there would be no dropout; what it records is discarded.
  InnerTape inner(ctx);
  std::array<Var, kMaxCheckpointInputs> copies;
  for (size_t i = 0; i < inputs.size(); ++i) copies[i] = inner.input(inputs[i]);
  const Var result = body.call(body.object, ctx, std::span(copies).first(inputs.size()));
  HEED_CHECK(result.rows() == y.rows() && result.cols() == y.cols(),
             "checkpoint: the output must have the shape of the first input");
  copy_rows(ctx, result.value, y.value);
  return y;
}

}  // namespace heed::checkpoint_detail
