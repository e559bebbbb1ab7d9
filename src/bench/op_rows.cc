#include <memory>

#include "base/arena.h"
#include "bench/row.h"

namespace heed::bench {
namespace {

// One forward or one forward and backward; returns the seconds these took.
double step(OpRun& run, Ctx& ctx) {
  Clock::time_point start = Clock::now();
  const OpResult result = run.forward(ctx);
  double seconds = seconds_since(start);
  if (ctx.tape) {
    run.seed(ctx, result);  // the gradient that a model would bring: not ours to pay
    start = Clock::now();
    ctx.tape->backward(ctx);
    seconds += seconds_since(start);
  }
  return seconds;
}

Time measure(const OpCase& op, bool backward, Bench& bench) {
  OpRun run(op, /*keep_input_gradients=*/false, bench.seed);
  Tape tape;
  Tape* used = backward ? &tape : nullptr;
  Arena plan = Arena::measuring();
  Ctx planning{.pool = bench.pool, .arena = plan, .tape = used};
  step(run, planning);

  Arena arena(plan.peak_bytes());
  const Arena::Mark empty = arena.mark();
  Ctx ctx{.pool = bench.pool, .arena = arena, .tape = used};
  return {best_seconds(bench.seconds, [&] {
    arena.rewind(empty);
    return step(run, ctx);
  })};
}

// "attention causal", but "layer_norm" whatever its options.
std::string row_name(const OpCase& op) {
  const bool options_matter = op.limit == Limit::gemm && op.op != "vocabulary_cross_entropy";
  return options_matter ? op.op + " " + op.variant : op.op;
}

}  // namespace

void add_op_rows(const SpeedSizes& sizes, std::vector<Row>& rows) {
  for (OpCase& op : speed_cases(sizes)) {
    const auto shared = std::make_shared<const OpCase>(std::move(op));
    const auto add = [&](bool backward) {
      Cost cost = shared->forward;
      if (backward) cost.flops += shared->backward.flops, cost.bytes += shared->backward.bytes;
      rows.push_back({.name = row_name(*shared) + (backward ? " forward+backward" : " forward"),
                      .shape = shared->shape,
                      .cost = cost,
                      .limit = shared->limit,
                      .traffic = Traffic::copy,
                      .measure = [=](Bench& bench) { return measure(*shared, backward, bench); }});
    };
    if (!shared->draws) add(false);  // without a tape, dropout has nothing to do
    add(true);
  }
}

}  // namespace heed::bench
