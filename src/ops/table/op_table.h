// One table of ops × shapes × options, used in three modes: against a reference in double
// precision and by finite differences (op_table_test.cc), and for speed (bench/ops.cc).
//
//   for (const OpCase& op : correctness_cases()) {
//     OpRun run(op);
//     OpResult y = run.forward(ctx);         // with ctx.tape: ready for backward
//     run.seed(ctx, y); ctx.tape->backward(ctx);
//   }
//
// A new op, or option of one, is a factory in op_cases.h and lines in the lists of op_table.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/bench.h"
#include "ops/ops.h"
#include "ops/table/op_reference.h"

namespace heed {

// Where every random choice of the table comes from; a test says so when it fails.
inline constexpr uint64_t kTableSeed = 20170612;
inline constexpr uint32_t kTableStep = 3;

// A matrix of normally distributed numbers.
struct Operand {
  int64_t rows = 0, cols = 0;
  float deviation = 1;
  float mean = 0;
};

// What one run of an op gives.
struct OpResult {
  std::vector<Var> outputs;  // empty for a loss
  std::vector<Mat> extras;   // outputs without gradient: attention's probabilities
  LossSum loss;
};

struct ReferenceOperands {
  std::vector<reference::Matrix> inputs, weights;
  reference::DropoutKey dropout;  // none: inference
};

// How much useful work one run does, and how many bytes it must move: each operand once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

struct RowRange {
  int64_t begin = 0, end = 0;
};

struct OpPart;

struct OpCase {
  std::string op;       // "attention"
  std::string variant;  // the options: "causal window 4"
  std::string shape;    // "64x8x64x256"

  std::vector<Operand> inputs;   // activations, all differentiable
  std::vector<Operand> weights;  // likewise
  std::function<OpResult(Ctx& ctx, std::span<const Var> inputs, std::span<const Weight> weights)>
      run;
  // The same as flat results: outputs, then extras; or the one number of a loss.
  std::function<std::vector<reference::Matrix>(const ReferenceOperands&)> reference;

  bool is_loss = false;
  float gradient_scale = 1;  // what a loss multiplies its gradient by
  bool draws = false;        // has dropout: a tape changes the result

  // Largest error allowed, as a share of the largest number of the tensor.
  double tolerance = 2e-6;
  double gradient_tolerance = 4e-6;
  // Below this a gradient is the rounding error of terms that cancel: that of a softmax over one
  // key is zero.
  double smallest_gradient = 0;
  // Step of finite differences; smaller where it must not cross a kink.
  double difference = 1e-5;

  Cost forward, backward;
  Limit limit = Limit::memory;

  // Pieces of the batch that must come out the same, bit for bit, when run alone without a tape;
  // empty where nothing is promised. Those of a loss are all its rows, one by one.
  std::function<std::vector<OpPart>()> parts;

  std::string title() const { return op + " [" + variant + "] " + shape; }
};

struct OpPart {
  OpCase op;
  std::vector<RowRange> inputs;  // the rows of each input of the whole that it takes
  RowRange outputs;              // the rows of the whole's outputs that it must equal
};

// An op's operands with their gradients. It owns them; the op's output belongs to the Ctx's arena.
class OpRun {
 public:
  // keep_input_gradients costs a copy for each input, which a measurement of speed must not see.
  explicit OpRun(const OpCase& op, bool keep_input_gradients = true,
                 uint64_t random_seed = kTableSeed);
  OpRun(const OpRun&) = delete;
  OpRun& operator=(const OpRun&) = delete;

  // Runs the op `times` times on the same operands.
  std::vector<OpResult> forward(Ctx& ctx, int times);
  OpResult forward(Ctx& ctx) { return forward(ctx, 1)[0]; }
  // Puts a fixed random matrix at the gradients of the outputs: the gradients at the inputs become
  // those of Σ seed ∘ output. A loss needs none.
  void seed(Ctx& ctx, const OpResult& result);
  // What seed() writes for output i.
  ConstMat seed_matrix(size_t i, int64_t rows, int64_t cols);

  std::span<Mat> inputs() { return inputs_; }
  std::span<Mat> weights() { return weights_; }
  // After Tape::backward: zero when no op claims to have written it, and NaN where one that does
  // left a gap.
  std::span<const Mat> input_gradients() const { return input_gradients_; }
  Mat weight_gradient(size_t i) const {
    const WeightGradient& gradient = weight_gradients_[i];
    if (!gradient.written) std::fill_n(gradient.value.data, gradient.value.size(), 0.0f);
    return gradient.value;
  }

 private:
  Mat fill(Arena& memory, const Operand& operand, uint32_t stream) const;

  const OpCase& op_;
  uint64_t random_seed_;
  Arena memory_;
  std::vector<Arena> seed_memory_;
  std::vector<Mat> inputs_, weights_, input_gradients_, seeds_;
  std::vector<WeightGradient> weight_gradients_;
};

// Small and odd shapes; every option.
std::vector<OpCase> correctness_cases();

// Sizes that depend on the machine, in floats: all the operands of one case together.
struct SpeedSizes {
  int64_t memory_floats = 0;  // far more than the caches hold
  int64_t l2_floats = 0;      // fits the L2 caches of the threads that are used
};
std::vector<OpCase> speed_cases(const SpeedSizes& sizes);

}  // namespace heed
