// Ops at sizes of real models: forward, and forward with backward.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "base/arena.h"
#include "base/philox.h"
#include "bench/row.h"
#include "ops/ops.h"

namespace heed::bench {
namespace {

// A matrix of normally distributed numbers.
struct Operand {
  int64_t rows = 0, cols = 0;
  float deviation = 1;
  float mean = 0;
};

struct OpBench {
  std::string name, shape;
  std::vector<Operand> inputs{}, weights{};
  // The output; empty for a loss.
  std::function<Var(Ctx& ctx, std::span<const Var> inputs, std::span<const Weight> weights)> run{};
  Cost forward{}, backward{};
  Limit limit = Limit::memory;
  bool training_only = false;  // dropout, which inference skips
};

using Vars = std::span<const Var>;
using Weights = std::span<const Weight>;

constexpr double kFloatBytes = sizeof(float);

// Large operands repeat after this many numbers, which saves seconds. Prime, so that no row length
// divides it.
constexpr int64_t kDistinctNumbers = 65521;

// Owns the operands and the gradients of the weights.
class Operands {
 public:
  Operands(const OpBench& op, uint64_t seed) : seed_(seed) {
    for (const Operand& input : op.inputs) inputs_.push_back(fill(input));
    for (const Operand& weight : op.weights) {
      weights_.push_back(fill(weight));
      gradients_.push_back({allocate(weight)});
    }
  }

  // One forward or, with a tape, one forward and backward; returns the seconds of these.
  double step(const OpBench& op, Ctx& ctx) {
    std::vector<Var> vars;
    for (const Mat& input : inputs_) {
      // value_kept: every step needs the same inputs.
      vars.push_back(
          {input, ctx.tape ? ctx.tape->gradient(input.rows, input.cols) : nullptr, true});
    }
    std::vector<Weight> weights;
    for (size_t i = 0; i < weights_.size(); ++i) {
      gradients_[i].written = false;
      weights.push_back({weights_[i], ctx.tape ? &gradients_[i] : nullptr});
    }
    Clock::time_point start = Clock::now();
    const Var y = op.run(ctx, vars, weights);
    double seconds = seconds_since(start);
    if (ctx.tape) {
      if (y.gradient) write_output_gradient(ctx, y);  // not part of the op's time
      start = Clock::now();
      ctx.tape->backward(ctx);
      seconds += seconds_since(start);
    }
    return seconds;
  }

 private:
  Mat allocate(const Operand& operand) {
    const auto floats = static_cast<size_t>(operand.rows * operand.cols);
    memory_.emplace_back(floats * sizeof(float));
    return {memory_.back().allocate<float>(floats), operand.rows, operand.cols};
  }
  Mat fill(const Operand& operand) {
    const Mat matrix = allocate(operand);
    Random random({seed_, 0, stream_++});
    const int64_t distinct = std::min(matrix.size(), kDistinctNumbers);
    for (int64_t i = 0; i < distinct; ++i) {
      matrix.data[i] = operand.mean + operand.deviation * random.normal();
    }
    for (int64_t i = distinct; i < matrix.size(); ++i) matrix.data[i] = matrix.data[i - distinct];
    return matrix;
  }
  void write_output_gradient(Ctx& ctx, const Var& y) {
    const GradientTarget target = ctx.tape->target(ctx, *y.gradient);
    if (ctx.measuring()) return;
    if (!output_gradient_.data) output_gradient_ = fill({y.rows(), y.cols()});
    for (int64_t r = 0; r < y.rows(); ++r) {
      std::copy_n(output_gradient_.row(r), y.cols(), target.value.row(r));
    }
  }

  uint64_t seed_;
  uint32_t stream_ = 0;
  std::vector<Arena> memory_;
  std::vector<Mat> inputs_, weights_;
  std::vector<WeightGradient> gradients_;
  Mat output_gradient_;
};

Time measure(const OpBench& op, bool backward, Bench& bench) {
  Operands operands(op, bench.seed);
  Tape tape;
  Tape* used = backward ? &tape : nullptr;
  Arena plan = Arena::measuring();
  Ctx planning{.pool = bench.pool, .arena = plan, .tape = used};
  operands.step(op, planning);

  Arena arena(plan.peak_bytes());
  const Arena::Mark empty = arena.mark();
  Ctx ctx{.pool = bench.pool, .arena = arena, .tape = used};
  return {best_seconds(bench.seconds, [&] {
    arena.rewind(empty);
    return operands.step(op, ctx);
  })};
}

// ---- the ops -----------------------------------------------------------------------------------

std::string dims(int64_t a, int64_t b) { return std::to_string(a) + "x" + std::to_string(b); }
std::string dims(int64_t a, int64_t b, int64_t c) { return dims(a, b) + "x" + std::to_string(c); }

float fan_in_deviation(int64_t in) { return 1 / std::sqrt(static_cast<float>(in)); }

std::shared_ptr<const std::vector<int32_t>> drawn(int64_t count, int64_t limit) {
  Random random({.seed = 0, .site = 2});
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(limit))));
  }
  return std::make_shared<const std::vector<int32_t>>(std::move(ids));
}

// An op bound by memory; the bytes of the two passes in matrices [rows, width].
OpBench elementwise(const char* name, int64_t rows, int64_t width, double forward,
                    double backward) {
  const double bytes = kFloatBytes * static_cast<double>(rows * width);
  OpBench op{.name = name, .shape = dims(rows, width), .inputs = {{rows, width}}};
  op.forward.bytes = forward * bytes, op.backward.bytes = backward * bytes;
  return op;
}

OpBench norm_op(NormKind kind, int64_t rows, int64_t width) {
  const bool layer_norm = kind == NormKind::layer_norm;
  OpBench op = elementwise(layer_norm ? "layer_norm" : "rms_norm", rows, width, 2, 3);
  op.inputs = {{.rows = rows, .cols = width, .deviation = 2, .mean = 0.5f}};  // not centred
  op.weights = {{.rows = 1, .cols = width, .deviation = 0.5f, .mean = 1}};
  if (layer_norm) op.weights.push_back({1, width});
  op.run = [kind, layer_norm](Ctx& ctx, Vars x, Weights w) {
    return norm(ctx, x[0], {.kind = kind, .gamma = w[0], .beta = layer_norm ? w[1] : Weight{}});
  };
  return op;
}

OpBench residual_add_op(int64_t rows, int64_t width) {
  OpBench op = elementwise("residual_add", rows, width, 3, 2);  // d_x is d_y: no copy
  op.inputs.push_back({rows, width});
  op.training_only = true;
  op.run = [](Ctx& ctx, Vars x, Weights) { return residual_add(ctx, x[0], x[1], 0.1f); };
  return op;
}

OpBench dropout_op(int64_t rows, int64_t width) {
  OpBench op = elementwise("dropout", rows, width, 2, 2);
  op.training_only = true;
  op.run = [](Ctx& ctx, Vars x, Weights) { return dropout(ctx, x[0], 0.1f); };
  return op;
}

OpBench gated_op(int64_t rows, int64_t width) {
  OpBench op = elementwise("gated", rows, width, 3, 5);
  op.inputs.push_back({rows, width});
  op.run = [](Ctx& ctx, Vars x, Weights) { return gated(ctx, x[0], x[1], Activation::silu); };
  return op;
}

OpBench embed_op(int64_t rows, int64_t width) {
  const int64_t vocabulary = rows;
  // The gradient is dense: every row of the table is written, most of them with zeros.
  OpBench op = elementwise("embed", rows, width, 2, 2);
  op.shape += " of " + std::to_string(vocabulary);
  op.inputs.clear();
  op.weights = {{vocabulary, width}};
  op.run = [width, tokens = drawn(rows, vocabulary), positions = drawn(rows, 13)](Ctx& ctx, Vars,
                                                                                  Weights w) {
    const Embedding embedding{.tokens = w[0], .scale = std::sqrt(static_cast<float>(width))};
    return embed(ctx, Batch{*tokens, *positions, {}, {}}, embedding);
  };
  return op;
}

OpBench cross_entropy_op(int64_t rows, int64_t classes) {
  OpBench op = elementwise("cross_entropy", rows, classes, 1, 1);
  op.inputs = {{rows, classes, 2}};
  op.run = [labels = drawn(rows, classes)](Ctx& ctx, Vars x, Weights) {
    cross_entropy(ctx, x[0], *labels, {.label_smoothing = 0.1f});
    return Var{};
  };
  return op;
}

OpBench attention_op(int32_t length, bool causal) {
  constexpr int kSequences = 64, kHeads = 8, kHeadDim = 64, kColumns = kHeads * kHeadDim;
  std::vector<int32_t> offsets;
  for (int s = 0; s <= kSequences; ++s) offsets.push_back(s * length);
  const int64_t rows = offsets.back();
  OpBench op{.name = causal ? "attention causal" : "attention full",
             .shape = dims(kSequences, kHeads, kHeadDim) + "x" + std::to_string(length),
             .inputs = {{rows, kColumns}, {rows, kColumns}, {rows, kColumns}}};
  op.run = [causal, offsets](Ctx& ctx, Vars x, Weights) {
    return attention(ctx, {x[0], x[1], x[2], offsets, offsets},
                     {.heads = kHeads, .kv_heads = kHeads, .head_dim = kHeadDim, .causal = causal});
  };
  const double pairs = static_cast<double>(rows) * length * (causal ? 0.5 : 1.0);
  op.forward.flops = 4 * pairs * kColumns;
  op.backward.flops = 2.5 * op.forward.flops;
  op.forward.bytes = kFloatBytes * 4 * static_cast<double>(rows * kColumns);
  op.backward.bytes = 2 * op.forward.bytes;
  op.limit = Limit::gemm;
  return op;
}

OpBench linear_op(int64_t rows, int64_t in, int64_t out, Activation activation) {
  OpBench op{.name = "linear " + std::string(kernels::name(activation)) + " bias",
             .shape = dims(rows, in, out),
             .inputs = {{rows, in}},
             .weights = {{out, in, fan_in_deviation(in)}, {1, out}}};
  op.run = [activation](Ctx& ctx, Vars x, Weights w) {
    return linear(ctx, x[0], {w[0], w[1]}, activation);
  };
  const auto floats = static_cast<double>(rows * in + in * out + rows * out);
  op.forward = {2 * static_cast<double>(rows) * static_cast<double>(in * out),
                kFloatBytes * floats};
  op.backward = {2 * op.forward.flops, 2 * op.forward.bytes};
  op.limit = Limit::gemm;
  return op;
}

OpBench vocabulary_cross_entropy_op(int64_t rows, int64_t width, int64_t vocabulary) {
  OpBench op{.name = "vocabulary_cross_entropy",
             .shape = dims(rows, width, vocabulary),
             .inputs = {{rows, width}},
             .weights = {{vocabulary, width, 2 * fan_in_deviation(width)}}};
  op.run = [labels = drawn(rows, vocabulary)](Ctx& ctx, Vars x, Weights w) {
    vocabulary_cross_entropy(ctx, x[0], {w[0]}, *labels, {.label_smoothing = 0.1f});
    return Var{};
  };
  op.forward = {2 * static_cast<double>(rows) * static_cast<double>(width * vocabulary),
                kFloatBytes * static_cast<double>((rows + vocabulary) * width)};
  op.backward = {2 * op.forward.flops, 2 * op.forward.bytes};
  op.limit = Limit::gemm;
  return op;
}

constexpr int64_t kWidth = 512;

std::vector<OpBench> ops(const SpeedSizes& sizes) {
  std::vector<OpBench> list;
  for (const Limit limit : {Limit::memory, Limit::l2}) {
    const int64_t floats = limit == Limit::memory ? sizes.memory_floats : sizes.l2_floats;
    // Rows such that `matrices` of them, all that forward and backward touch, fill that memory.
    const auto rows = [&](int64_t matrices, int64_t width = kWidth) {
      return std::max<int64_t>(floats / (matrices * width), 1);
    };
    const auto add = [&](OpBench op) {
      op.limit = limit;
      list.push_back(std::move(op));
    };
    add(norm_op(NormKind::layer_norm, rows(4), kWidth));
    add(norm_op(NormKind::rms_norm, rows(4), kWidth));
    add(residual_add_op(rows(5), kWidth));
    add(dropout_op(rows(3), kWidth));
    add(gated_op(rows(6), kWidth));
    add(embed_op(rows(4), kWidth));
    // As wide as a vocabulary for memory, as a set of classes for L2.
    const int64_t classes = limit == Limit::memory ? 32000 : 1000;
    add(cross_entropy_op(rows(4, classes), classes));
  }
  for (const int32_t length : {16, 64, 256, 1024}) {
    for (const bool causal : {true, false}) list.push_back(attention_op(length, causal));
  }
  list.push_back(linear_op(1008, 512, 2048, Activation::relu));
  list.push_back(linear_op(256, 768, 3072, Activation::gelu_tanh));
  list.push_back(vocabulary_cross_entropy_op(4080, 128, 10000));
  list.push_back(vocabulary_cross_entropy_op(1008, 512, 32000));
  return list;
}

}  // namespace

void add_op_rows(const SpeedSizes& sizes, std::vector<Row>& rows) {
  for (OpBench& op : ops(sizes)) {
    const auto shared = std::make_shared<const OpBench>(std::move(op));
    const auto add = [&](bool backward) {
      Cost cost = shared->forward;
      if (backward) cost.flops += shared->backward.flops, cost.bytes += shared->backward.bytes;
      rows.push_back({.name = shared->name + (backward ? " forward+backward" : " forward"),
                      .shape = shared->shape,
                      .cost = cost,
                      .limit = shared->limit,
                      .traffic = Traffic::copy,
                      .measure = [=](Bench& bench) { return measure(*shared, backward, bench); }});
    };
    if (!shared->training_only) add(false);
    add(true);
  }
}

}  // namespace heed::bench
