#include "ops/table/op_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed {
namespace {

// Large operands repeat after this many numbers, which saves seconds. Prime, so that no row length
// divides it.
constexpr int64_t kDistinctNumbers = 65521;

constexpr uint32_t kWeightStream = 100, kSeedStream = 200;

// Copies an input's gradient before the tape is cleared. Recorded first, so it runs last. An
// unwritten gradient is zero; elements that an op left out stay NaN.
struct KeepGradient {
  Gradient* gradient;
  Mat to;

  void backward(Ctx& ctx) {
    if (ctx.measuring()) return;
    if (!gradient->written) {
      std::fill_n(to.data, to.size(), 0.0f);
      return;
    }
    const Mat from = ctx.tape->arrived(ctx, *gradient);
    for (int64_t r = 0; r < to.rows; ++r) std::copy_n(from.row(r), to.cols, to.row(r));
  }
};

size_t padded_bytes(const Operand& operand) {
  const size_t bytes = static_cast<size_t>(operand.rows * operand.cols) * sizeof(float);
  return (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

size_t operand_bytes(const OpCase& op) {
  size_t bytes = 0;
  for (const Operand& input : op.inputs) bytes += 2 * padded_bytes(input);
  for (const Operand& weight : op.weights) bytes += 2 * padded_bytes(weight);
  return bytes;
}

// A matrix of NaN, so that elements which an op does not write show.
Mat missing(Arena& memory, int64_t rows, int64_t cols) {
  float* data = memory.allocate<float>(static_cast<size_t>(rows * cols));
  std::fill_n(data, rows * cols, std::numeric_limits<float>::quiet_NaN());
  return {data, rows, cols};
}

}  // namespace

OpRun::OpRun(const OpCase& op) : op_(op), memory_(operand_bytes(op)) {
  uint32_t stream = 0;
  for (const Operand& input : op.inputs) {
    inputs_.push_back(fill(memory_, input, stream++));
    input_gradients_.push_back(missing(memory_, input.rows, input.cols));
  }
  stream = kWeightStream;
  for (const Operand& weight : op.weights) {
    weights_.push_back(fill(memory_, weight, stream++));
    weight_gradients_.push_back({missing(memory_, weight.rows, weight.cols)});
  }
}

Mat OpRun::fill(Arena& memory, const Operand& operand, uint32_t stream) {
  const int64_t size = operand.rows * operand.cols;
  float* data = memory.allocate<float>(static_cast<size_t>(size));
  Random random({kTableSeed, kTableStep, stream});
  const int64_t distinct = std::min(size, kDistinctNumbers);
  for (int64_t i = 0; i < distinct; ++i) {
    data[i] = operand.mean + operand.deviation * random.normal();
  }
  for (int64_t i = distinct; i < size; ++i) data[i] = data[i - distinct];
  return {data, operand.rows, operand.cols};
}

std::vector<OpResult> OpRun::forward(Ctx& ctx, int times) {
  std::vector<Var> vars;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    // value_kept: an op that works in place must not change the operands.
    Var var{inputs_[i], nullptr, true};
    if (ctx.tape) {
      var.gradient = ctx.tape->gradient(var.rows(), var.cols());
      ctx.tape->record(nullptr, KeepGradient{var.gradient, input_gradients_[i]});
    }
    vars.push_back(var);
  }
  std::vector<Weight> weights;
  for (size_t i = 0; i < weights_.size(); ++i) {
    weight_gradients_[i].written = false;
    weights.push_back({weights_[i], ctx.tape ? &weight_gradients_[i] : nullptr});
  }
  std::vector<OpResult> results;
  for (int i = 0; i < times; ++i) results.push_back(op_.run(ctx, vars, weights));
  return results;
}

ConstMat OpRun::seed_matrix(size_t i, int64_t rows, int64_t cols) {
  while (seeds_.size() <= i) seeds_.push_back({});
  Mat& seed = seeds_[i];
  if (!seed.data && rows * cols > 0) {
    const Operand operand{rows, cols};
    seed_memory_.emplace_back(padded_bytes(operand));
    seed = fill(seed_memory_.back(), operand, kSeedStream + static_cast<uint32_t>(i));
  }
  return seed;
}

void OpRun::seed(Ctx& ctx, const OpResult& result) {
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const Var& y = result.outputs[i];
    const GradientTarget target = ctx.tape->target(ctx, *y.gradient);
    if (ctx.measuring()) continue;
    const ConstMat from = seed_matrix(i, y.rows(), y.cols());
    for (int64_t r = 0; r < y.rows(); ++r) std::copy_n(from.row(r), y.cols(), target.value.row(r));
  }
}

// ---- the table -------------------------------------------------------------------------------

namespace {

struct Registered {
  std::string name;
  void (*add)(std::vector<OpCase>& table);
};

std::vector<Registered>& registry() {
  static std::vector<Registered> all;
  return all;
}

}  // namespace

RegisterOps::RegisterOps(const char* name, void (*add)(std::vector<OpCase>& table)) {
  registry().push_back({name, add});
}

std::vector<OpCase> all_op_cases() {
  // By name: the order in which static objects are initialised depends on the linker.
  std::ranges::sort(registry(), {}, &Registered::name);
  std::vector<OpCase> table;
  for (const Registered& entry : registry()) entry.add(table);
  return table;
}

}  // namespace heed
