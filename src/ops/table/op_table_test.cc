// Every op of the table against its reference in double precision, its gradients against finite
// differences of that reference, and the promises that ops.h makes about bits and memory.
#include "ops/table/op_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace heed {
namespace {

using reference::Matrix;

const std::vector<OpCase>& table() {
  static const std::vector<OpCase> cases = all_op_cases();
  return cases;
}

std::vector<std::string> op_names() {
  std::set<std::string> names;
  for (const OpCase& op : table()) names.insert(op.op);
  return {names.begin(), names.end()};
}

// Pools of 1, 2 and 3 threads.
ThreadPool& pool_of(int threads) {
  static ThreadPool pools[] = {ThreadPool(1), ThreadPool(2), ThreadPool(3)};
  return pools[threads - 1];
}

struct RunOptions {
  int threads = 1;
  bool tape = false;
  int times = 1;            // how often the op is used on the same inputs
  uint32_t first_site = 0;  // of the random streams
};

// Copies of everything that a run computes.
struct Numbers {
  std::vector<std::vector<float>> outputs;  // of the last use, and then the extras
  size_t seeded = 0;                        // how many of these have a gradient
  double loss = 0;
  std::vector<std::vector<float>> gradients;  // inputs, then weights; only with a tape
  uint32_t next_site = 0;
};

std::vector<float> copy_of(ConstMat m) {
  std::vector<float> values;
  for (int64_t r = 0; r < m.rows; ++r) values.insert(values.end(), m.row(r), m.row(r) + m.cols);
  return values;
}

// Forward and, with a tape, backward. Returns the results that the arena still holds.
std::vector<OpResult> step(OpRun& run, Ctx& ctx, int times) {
  std::vector<OpResult> results = run.forward(ctx, times);
  if (ctx.tape) {
    for (const OpResult& result : results) run.seed(ctx, result);
    ctx.tape->backward(ctx);
  }
  return results;
}

struct Peak {
  size_t bytes = 0, used = 0;
};
Peak planned(OpRun& run, const RunOptions& options) {
  Arena arena = Arena::measuring();
  Tape tape;
  Ctx ctx{.pool = pool_of(options.threads), .arena = arena, .tape = options.tape ? &tape : nullptr};
  step(run, ctx, options.times);
  return {arena.peak_bytes(), arena.used_bytes()};
}

// NaN all over: an op that reads memory which it has not written gives itself away.
void poison(Arena& arena) {
  if (arena.capacity_bytes() == 0) return;
  const Arena::Mark start = arena.mark();
  auto* bytes = arena.allocate<unsigned char>(arena.capacity_bytes());
  std::memset(bytes, 0xFF, arena.capacity_bytes());
  arena.rewind(start);
}

Numbers compute(OpRun& run, const RunOptions& options) {
  Arena arena(planned(run, options).bytes);
  poison(arena);
  Tape tape;
  Ctx ctx{.pool = pool_of(options.threads), .arena = arena, .tape = options.tape ? &tape : nullptr};
  ctx.seed = kTableSeed, ctx.step = kTableStep, ctx.site = options.first_site;

  std::vector<OpResult> results = run.forward(ctx, options.times);
  // Before backward, which may reuse what it no longer needs.
  Numbers numbers;
  for (const Var& y : results.back().outputs) numbers.outputs.push_back(copy_of(y.value));
  numbers.seeded = numbers.outputs.size();
  for (const Mat& extra : results.back().extras) numbers.outputs.push_back(copy_of(extra));
  numbers.loss = results.back().loss.sum;
  numbers.next_site = ctx.site;
  if (!options.tape) return numbers;
  for (const OpResult& result : results) run.seed(ctx, result);
  tape.backward(ctx);
  for (const Mat& gradient : run.input_gradients()) {
    numbers.gradients.push_back(copy_of(gradient));
  }
  for (size_t i = 0; i < run.weights().size(); ++i) {
    numbers.gradients.push_back(copy_of(run.weight_gradient(i)));
  }
  return numbers;
}

Numbers compute(const OpCase& op, const RunOptions& options) {
  OpRun run(op);
  return compute(run, options);
}

// ---- comparing -------------------------------------------------------------------------------

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

void expect_same_bits(const Numbers& a, const Numbers& b, const std::string& what) {
  ASSERT_EQ(a.outputs.size(), b.outputs.size()) << what;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    EXPECT_TRUE(same_bits(a.outputs[i], b.outputs[i])) << what << ": output " << i;
  }
  EXPECT_EQ(a.loss, b.loss) << what;
  ASSERT_EQ(a.gradients.size(), b.gradients.size()) << what;
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    EXPECT_TRUE(same_bits(a.gradients[i], b.gradients[i])) << what << ": gradient " << i;
  }
}

// |actual - expected| as a share of the largest expected number. `at` says where.
struct Deviation {
  double share = 0;
  size_t at = 0;
  double actual = 0, expected = 0;
};

// largest: of the whole tensor, where only some of its elements are compared.
Deviation largest_error(const std::vector<float>& actual, const std::vector<double>& expected,
                        double largest) {
  Deviation error;
  for (size_t i = 0; i < expected.size(); ++i) {
    double difference = std::abs(actual[i] - expected[i]);
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    if (difference > error.share) error = {difference, i, actual[i], expected[i]};
  }
  // All zero is right only if exactly zero.
  error.share /= std::max(largest, std::numeric_limits<double>::min());
  return error;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

void expect_close(const Deviation& error, double tolerance, const std::string& what) {
  EXPECT_LE(error.share, tolerance) << what << ", element " << error.at << ": " << error.actual
                                    << ", expected " << error.expected;
}

ReferenceOperands reference_operands(OpRun& run, bool training, uint32_t site) {
  ReferenceOperands operands;
  for (const Mat& input : run.inputs()) operands.inputs.emplace_back(ConstMat(input));
  for (const Mat& weight : run.weights()) operands.weights.emplace_back(ConstMat(weight));
  if (training) operands.dropout = RandomKey{kTableSeed, kTableStep, site};
  return operands;
}

// ---- the modes -------------------------------------------------------------------------------

class OpTable : public testing::TestWithParam<std::string> {
 protected:
  // Calls body(case) for every case of the op.
  template <class Body>
  void for_each_case(const Body& body) {
    for (const OpCase& op : table()) {
      if (op.op != GetParam()) continue;
      SCOPED_TRACE(op.title() + ", seed " + std::to_string(kTableSeed));
      body(op);
    }
  }
};

TEST_P(OpTable, MatchesTheDoubleReference) {
  double worst = 0;
  for_each_case([&](const OpCase& op) {
    for (const bool tape : {false, true}) {
      OpRun run(op);
      const Numbers numbers = compute(run, {.threads = 2, .tape = tape});
      const std::vector<Matrix> expected = op.reference(reference_operands(run, tape, 0));
      const std::string mode = tape ? "with a tape" : "without a tape";
      if (op.is_loss) {
        const double error = std::abs(numbers.loss - expected[0].values[0]);
        worst = std::max(worst, error / std::abs(expected[0].values[0]));
        EXPECT_LE(error, op.tolerance * std::abs(expected[0].values[0])) << mode;
        continue;
      }
      ASSERT_EQ(numbers.outputs.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(numbers.outputs[i].size(), expected[i].values.size());
        const Deviation error =
            largest_error(numbers.outputs[i], expected[i].values, largest_of(expected[i].values));
        worst = std::max(worst, error.share);
        expect_close(error, op.tolerance, mode + ", output " + std::to_string(i));
      }
    }
  });
  RecordProperty("worst_error", (std::ostringstream() << worst).str());
}

// Σ seed ∘ output over the first `outputs` results of the reference, or the loss.
double objective(const OpCase& op, OpRun& run, size_t outputs, const ReferenceOperands& operands) {
  const std::vector<Matrix> results = op.reference(operands);
  if (op.is_loss) return op.gradient_scale * results[0].values[0];
  double sum = 0;
  for (size_t i = 0; i < outputs; ++i) {
    const ConstMat seed = run.seed_matrix(i, results[i].rows, results[i].cols);
    for (int64_t r = 0; r < results[i].rows; ++r) {
      for (int64_t c = 0; c < results[i].cols; ++c) sum += seed.row(r)[c] * results[i].at(r, c);
    }
  }
  return sum;
}

// How many elements of each operand finite differences can afford; 0 for the largest case.
int64_t affordable_samples(const OpCase& op) {
  constexpr double kWork = 4e7, kMost = 200;
  double elements = 0;
  for (const auto* list : {&op.inputs, &op.weights}) {
    for (const Operand& operand : *list) {
      elements += static_cast<double>(operand.rows) * static_cast<double>(operand.cols);
    }
  }
  return static_cast<int64_t>(std::min(kWork / std::max(op.flops, 20 * elements), kMost));
}

// Finite differences of a case's objective in one of its operands.
class Differences {
 public:
  // objective() is a function of `operand`, which is changed and restored.
  Differences(Matrix& operand, double step, std::function<double()> objective)
      : operand_(operand), step_(step), objective_(std::move(objective)) {}

  double along(const std::vector<double>& direction) {
    const std::vector<double> before = operand_.values;
    double change = 0;
    for (const double sign : {1.0, -1.0}) {
      for (size_t i = 0; i < before.size(); ++i) {
        operand_.values[i] = before[i] + sign * step_ * direction[i];
      }
      change += sign * objective_();
    }
    operand_.values = before;
    return change / (2 * step_);
  }
  double at(size_t element) {
    std::vector<double> direction(operand_.values.size());
    direction[element] = 1;
    return along(direction);
  }

 private:
  Matrix& operand_;
  double step_;
  std::function<double()> objective_;
};

// Some elements one by one (all of them in small operands), and a direction in which every element
// takes part.
void expect_gradient(const OpCase& op, Differences& differences, const std::vector<float>& gradient,
                     double& worst) {
  Random random({kTableSeed, 0, 7});
  const int64_t samples = affordable_samples(op);
  const auto size = static_cast<int64_t>(gradient.size());
  std::vector<float> actual;
  std::vector<double> expected;
  for (int64_t n = 0; n < std::min(size, samples); ++n) {
    const auto at = static_cast<size_t>(
        size <= samples ? n : static_cast<int64_t>(random.below(gradient.size())));
    actual.push_back(gradient[at]);
    expected.push_back(differences.at(at));
  }
  double largest = op.smallest_gradient, along = 0, square = 0;
  for (const float value : gradient) largest = std::max(largest, std::abs(double{value}));
  const Deviation error = largest_error(actual, expected, std::max(largest, largest_of(expected)));
  expect_close(error, op.gradient_tolerance, "sampled elements");

  std::vector<double> direction;
  for (const float value : gradient) {
    direction.push_back(random.next() % 2 == 0 ? 1 : -1);
    along += direction.back() * value;
    square += double{value} * value;
  }
  const double norm =
      std::max(std::sqrt(square), op.smallest_gradient * std::sqrt(static_cast<double>(size)));
  const double difference = differences.along(direction);
  EXPECT_LE(std::abs(difference - along), op.gradient_tolerance * norm)
      << "along a direction: " << along << ", expected " << difference;
  worst = std::max({worst, error.share, norm > 0 ? std::abs(difference - along) / norm : 0});
}

TEST_P(OpTable, GradientsMatchFiniteDifferences) {
  double worst = 0;
  for_each_case([&](const OpCase& op) {
    OpRun run(op);
    const Numbers numbers = compute(run, {.threads = 2, .tape = true});
    ReferenceOperands operands = reference_operands(run, true, 0);
    size_t tensor = 0;
    for (auto* list : {&operands.inputs, &operands.weights}) {
      for (Matrix& operand : *list) {
        SCOPED_TRACE("operand " + std::to_string(tensor));
        Differences differences(operand, op.difference,
                                [&] { return objective(op, run, numbers.seeded, operands); });
        expect_gradient(op, differences, numbers.gradients[tensor++], worst);
      }
    }
  });
  RecordProperty("worst_error", (std::ostringstream() << worst).str());
}

TEST_P(OpTable, GradientsOfTwoUsesAddUp) {
  for_each_case([&](const OpCase& op) {
    const Numbers first = compute(op, {.threads = 2, .tape = true});
    // The second use draws from the next site.
    const Numbers second = compute(op, {.threads = 2, .tape = true, .first_site = first.next_site});
    const Numbers both = compute(op, {.threads = 2, .tape = true, .times = 2});
    for (size_t i = 0; i < both.gradients.size(); ++i) {
      std::vector<double> sum;
      for (size_t j = 0; j < first.gradients[i].size(); ++j) {
        sum.push_back(double{first.gradients[i][j]} + second.gradients[i][j]);
      }
      expect_close(largest_error(both.gradients[i], sum, largest_of(sum)), 1e-6,
                   "gradient " + std::to_string(i));
    }
  });
}

TEST_P(OpTable, SameBitsForAnyNumberOfThreads) {
  for_each_case([&](const OpCase& op) {
    for (const bool tape : {false, true}) {
      const Numbers one = compute(op, {.threads = 1, .tape = tape});
      for (const int threads : {2, 3}) {
        expect_same_bits(one, compute(op, {.threads = threads, .tape = tape}),
                         std::to_string(threads) + " threads" + (tape ? ", training" : ""));
      }
    }
  });
}

TEST_P(OpTable, TapeDoesNotChangeTheForward) {
  for_each_case([&](const OpCase& op) {
    if (op.draws) return;
    Numbers training = compute(op, {.threads = 2, .tape = true});
    training.gradients.clear();
    expect_same_bits(compute(op, {.threads = 2}), training, "training");
  });
}

// Without a tape, no result depends on what else is in the batch.
TEST_P(OpTable, PartsAloneHaveTheSameBits) {
  for_each_case([&](const OpCase& op) {
    if (!op.parts) return;
    OpRun whole(op);
    const Numbers expected = compute(whole, {.threads = 2});
    double sum_of_losses = 0;
    for (const OpPart& part : op.parts()) {
      OpRun run(part.op);
      for (size_t i = 0; i < run.inputs().size(); ++i) {
        const Mat from = whole.inputs()[i], to = run.inputs()[i];
        const RowRange rows = part.inputs[i];
        ASSERT_EQ(rows.end - rows.begin, to.rows);
        for (int64_t r = 0; r < to.rows; ++r) {
          std::copy_n(from.row(rows.begin + r), to.cols, to.row(r));
        }
      }
      const Numbers alone = compute(run, {.threads = 2});
      sum_of_losses += alone.loss;
      if (op.is_loss) continue;
      const int64_t rows = part.outputs.end - part.outputs.begin;
      const auto width = static_cast<int64_t>(alone.outputs[0].size()) / rows;
      const auto begin = expected.outputs[0].begin() + part.outputs.begin * width;
      EXPECT_TRUE(same_bits(alone.outputs[0], {begin, begin + rows * width}))
          << "rows " << part.outputs.begin << " to " << part.outputs.end << " as "
          << part.op.title();
    }
    EXPECT_EQ(sum_of_losses, expected.loss);
  });
}

TEST_P(OpTable, MeasuringPredictsThePeak) {
  for_each_case([&](const OpCase& op) {
    for (const bool tape : {false, true}) {
      const RunOptions options{.threads = 2, .tape = tape, .times = 2};
      OpRun run(op);
      const Peak plan = planned(run, options);
      Arena arena(plan.bytes);
      Tape steps;
      Ctx ctx{.pool = pool_of(2), .arena = arena, .tape = tape ? &steps : nullptr};
      step(run, ctx, options.times);
      EXPECT_EQ(arena.peak_bytes(), plan.bytes) << (tape ? "training" : "inference");
      EXPECT_EQ(arena.used_bytes(), plan.used) << (tape ? "training" : "inference");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, OpTable, testing::ValuesIn(op_names()),
                         [](const auto& op) { return op.param; });

// A linker that drops the registering objects would leave an empty table, which passes everything.
TEST(OpTableTest, EveryCaseFileIsRegistered) { EXPECT_GE(op_names().size(), 20u); }

TEST(OpTableTest, TitlesAreUnique) {
  std::set<std::string> titles;
  for (const OpCase& op : table()) EXPECT_TRUE(titles.insert(op.title()).second) << op.title();
}

}  // namespace
}  // namespace heed
