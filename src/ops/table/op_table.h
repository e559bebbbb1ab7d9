// One table of ops × shapes × options for the tests: against a reference in double precision, and
// gradients by finite differences (op_table_test.cc). Tests only; no part of it is in the library.
//
//   for (const OpCase& op : all_op_cases()) {
//     OpRun run(op);
//     OpResult y = run.forward(ctx);         // with ctx.tape: ready for backward
//     run.seed(ctx, y); ctx.tape->backward(ctx);
//   }
//
// A new op adds a file NAME_case.cc with its reference and its cases, registered by a RegisterOps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "ops/table/op_reference.h"

namespace heed {

// Seed of all random numbers of the table; printed when a test fails.
inline constexpr uint64_t kTableSeed = 20170612;
inline constexpr uint32_t kTableStep = 3;

// A matrix of normally distributed numbers.
struct Operand {
  int64_t rows = 0, cols = 0;
  float deviation = 1;
  float mean = 0;
};

struct OpResult {
  std::vector<Var> outputs;  // empty for a loss
  std::vector<Mat> extras;   // outputs without gradient: attention's probabilities
  LossSum loss;
};

struct ReferenceOperands {
  std::vector<reference::Matrix> inputs, weights;
  reference::DropoutKey dropout;  // none: inference
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
  // The same in double precision, as one list: outputs, then extras; or the one number of a loss.
  std::function<std::vector<reference::Matrix>(const ReferenceOperands&)> reference;

  bool is_loss = false;
  float gradient_scale = 1;  // what a loss multiplies its gradient by
  bool draws = false;        // has dropout, so a tape changes the result

  // Largest allowed error relative to the largest number of the tensor.
  double tolerance = 2e-6;
  double gradient_tolerance = 4e-6;
  // A gradient below this is rounding error of terms that cancel; e.g. a softmax over one key has
  // gradient zero.
  double smallest_gradient = 0;
  // Step of finite differences; smaller where it must not cross a kink.
  double difference = 1e-5;
  double flops = 0;  // of one forward: bounds the number of finite differences; 0: by operand sizes

  // Parts of the batch whose results must be bit-identical when run alone without a tape; empty
  // where that does not hold. The parts of a loss are its rows, one by one.
  std::function<std::vector<OpPart>()> parts;

  std::string title() const { return op + " [" + variant + "] " + shape; }
};

struct OpPart {
  OpCase op;
  std::vector<RowRange> inputs;  // the rows of each input of the whole that it takes
  RowRange outputs;              // the rows of the whole's outputs that it must equal
};

// Owns an op's operands and their gradients; the op's output is in the Ctx's arena.
class OpRun {
 public:
  explicit OpRun(const OpCase& op);
  OpRun(const OpRun&) = delete;
  OpRun& operator=(const OpRun&) = delete;

  // Runs the op `times` times on the same operands.
  std::vector<OpResult> forward(Ctx& ctx, int times);
  OpResult forward(Ctx& ctx) { return forward(ctx, 1)[0]; }
  // Writes a fixed random matrix to the gradients of the outputs, so that the gradients at the
  // inputs are those of Σ seed ∘ output. A loss needs none.
  void seed(Ctx& ctx, const OpResult& result);
  // What seed() writes for output i.
  ConstMat seed_matrix(size_t i, int64_t rows, int64_t cols);

  std::span<Mat> inputs() { return inputs_; }
  std::span<Mat> weights() { return weights_; }
  // After Tape::backward: zero when no op wrote it, NaN at elements that an op left out.
  std::span<const Mat> input_gradients() const { return input_gradients_; }
  Mat weight_gradient(size_t i) const {
    const WeightGradient& gradient = weight_gradients_[i];
    if (!gradient.written) std::fill_n(gradient.value.data, gradient.value.size(), 0.0f);
    return gradient.value;
  }

 private:
  static Mat fill(Arena& memory, const Operand& operand, uint32_t stream);

  const OpCase& op_;
  Arena memory_;
  std::vector<Arena> seed_memory_;
  std::vector<Mat> inputs_, weights_, input_gradients_, seeds_;
  std::vector<WeightGradient> weight_gradients_;
};

// A static object of each NAME_case.cc. `add` appends the cases: small and odd shapes, every option.
class RegisterOps {
 public:
  RegisterOps(const char* name, void (*add)(std::vector<OpCase>& table));
};

// All registered cases, in the order of their names.
std::vector<OpCase> all_op_cases();

}  // namespace heed
