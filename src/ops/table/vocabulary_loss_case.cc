// vocabulary_loss.cc: losses over logits that exist one tile at a time.
#include <cmath>
#include <memory>
#include <utility>

#include "ops/table/case_tools.h"

namespace heed::reference {

namespace {

double kl_divergence(const Matrix& student, const Matrix& teacher, double temperature) {
  double sum = 0;
  for (int64_t r = 0; r < student.rows; ++r) {
    const std::vector<double> s = negative_log_softmax(student, r, temperature);
    const std::vector<double> t = negative_log_softmax(teacher, r, temperature);
    for (size_t c = 0; c < s.size(); ++c) sum += std::exp(-t[c]) * (s[c] - t[c]);
  }
  return sum * temperature * temperature;
}

double twin_divergence(const Matrix& logits, std::span<const int32_t> labels) {
  double sum = 0;
  for (int64_t r = 0; r < logits.rows / 2; ++r) {
    if (labels[static_cast<size_t>(r)] == kIgnoreLabel) continue;
    const std::vector<double> p = negative_log_softmax(logits, r, 1);
    const std::vector<double> q = negative_log_softmax(logits, logits.rows / 2 + r, 1);
    for (size_t c = 0; c < p.size(); ++c) {
      sum += (std::exp(-p[c]) - std::exp(-q[c])) * (q[c] - p[c]) / 2;
    }
  }
  return sum;
}

}  // namespace

}  // namespace heed::reference

namespace heed::op_cases {
namespace {

// Each row alone: the sum of their losses is the loss of them all. make(options) builds the case.
// Not for huge weights, which every part would draw again.
template <class Options>
void set_loss_parts(OpCase& op, const Options& options, OpCase (*make)(const Options&)) {
  constexpr int64_t kMaxDrawn = 4 << 20;
  const int64_t rows = op.inputs[0].rows;
  if (rows == 0 || rows * op.weights[0].rows * op.weights[0].cols > kMaxDrawn) return;
  op.parts = [=] {
    std::vector<OpPart> parts;
    for (int64_t row = 0; row < rows; ++row) {
      Options part = options;
      part.first_row = row, part.rows = 1;
      parts.push_back({make(part), {{row, row + 1}}, {}});
    }
    return parts;
  };
}

// A loss of the logits x Wᵀ + b.  x [rows, width], W [vocabulary, width]
OpCase vocabulary_loss(const char* name, int64_t rows, int64_t width, int64_t vocabulary,
                       bool bias) {
  OpCase op;
  op.op = name;
  op.shape = dims({rows, width, vocabulary});
  op.inputs = {{rows, width}};
  op.weights = {{vocabulary, width, 2 * fan_in_deviation(width)}};
  if (bias) op.weights.push_back({1, vocabulary});
  op.is_loss = true;
  return op;
}

struct VocabularyCase {
  int64_t rows = 1, width = 8, vocabulary = 11;
  bool bias = false;
  CrossEntropyOptions options{};
  bool ignore_some = false;
  int64_t first_row = 0;  // of a longer batch, whose labels go on as if it were all here
};

OpCase vocabulary_cross_entropy_case(const VocabularyCase& o) {
  const auto labels = std::make_shared<const std::vector<int32_t>>(
      drawn_labels({o.first_row, o.first_row + o.rows}, o.vocabulary, o.ignore_some));
  OpCase op = vocabulary_loss("vocabulary_cross_entropy", o.rows, o.width, o.vocabulary, o.bias);
  op.variant = loss_variant(o.options, o.ignore_some, Words().add(o.bias, "bias"));
  op.gradient_scale = o.options.gradient_scale;
  op.run = [=](Ctx& ctx, Vars inputs, Weights weights) {
    const Linear layer{weights[0], o.bias ? weights[1] : Weight{}};
    return loss_output(vocabulary_cross_entropy(ctx, inputs[0], layer, *labels, o.options));
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    const Matrix logits =
        reference::linear(in.inputs[0], in.weights[0], optional_matrix(in.weights, 1));
    return {Matrix(reference::cross_entropy(logits, *labels, o.options))};
  };
  op.flops = 2 * static_cast<double>(o.rows) * static_cast<double>(o.width * o.vocabulary);
  set_loss_parts(op, o, vocabulary_cross_entropy_case);
  return op;
}

struct DistillationCase {
  int64_t rows = 1, width = 8, teacher_width = 8, vocabulary = 11;
  bool bias = false;
  DistillationOptions options{};
  int64_t first_row = 0;  // of a longer batch, as above
};

OpCase vocabulary_kl_divergence_case(const DistillationCase& o) {
  struct Data {
    Constants x, weight;
  };
  const std::shared_ptr<const Data> data(new Data{
      Constants(o.first_row + o.rows, o.teacher_width, kTargets),
      Constants(o.vocabulary, o.teacher_width, kLabels, 2 * fan_in_deviation(o.teacher_width))});
  const ConstMat teacher_x(data->x.view.row(o.first_row), o.rows, o.teacher_width);
  OpCase op = vocabulary_loss("vocabulary_kl_divergence", o.rows, o.width, o.vocabulary, o.bias);
  op.variant = Words()
                   .add(o.options.temperature != 1, "temperature " + number(o.options.temperature))
                   .add(o.bias, "bias")
                   .text();
  op.gradient_scale = o.options.gradient_scale;
  op.run = [=](Ctx& ctx, Vars inputs, Weights weights) {
    const Linear layer{weights[0], o.bias ? weights[1] : Weight{}};
    const Teacher teacher{teacher_x, {Weight{data->weight.view}}};
    return loss_output(vocabulary_kl_divergence(ctx, inputs[0], layer, teacher, o.options));
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    const auto logits = [](const Matrix& x, const Matrix& w, const Matrix* bias) {
      return reference::linear(x, w, bias);
    };
    return {Matrix(reference::kl_divergence(
        logits(in.inputs[0], in.weights[0], optional_matrix(in.weights, 1)),
        logits(Matrix(teacher_x), Matrix(data->weight.view), nullptr), o.options.temperature))};
  };
  op.flops = 2 * static_cast<double>(o.rows * o.vocabulary) *
             static_cast<double>(o.width + o.teacher_width);
  set_loss_parts(op, o, vocabulary_kl_divergence_case);
  return op;
}

struct TwinCase {
  int64_t pairs = 1, width = 8, vocabulary = 11;
  bool bias = false;
  float divergence_weight = 1;
  CrossEntropyOptions options{};
  bool ignore_some = false;
};

OpCase vocabulary_twin_cross_entropy_case(const TwinCase& o) {
  std::vector<int32_t> drawn = drawn_labels({0, o.pairs}, o.vocabulary, o.ignore_some);
  drawn.insert(drawn.end(), drawn.begin(), drawn.begin() + o.pairs);
  const auto labels = std::make_shared<const std::vector<int32_t>>(std::move(drawn));
  OpCase op =
      vocabulary_loss("vocabulary_twin_cross_entropy", 2 * o.pairs, o.width, o.vocabulary, o.bias);
  op.variant =
      loss_variant(o.options, o.ignore_some,
                   Words().add(true, "weight " + number(o.divergence_weight)).add(o.bias, "bias"));
  op.gradient_scale = o.options.gradient_scale;
  op.run = [=](Ctx& ctx, Vars inputs, Weights weights) {
    const Linear layer{weights[0], o.bias ? weights[1] : Weight{}};
    const TwinLoss loss = vocabulary_twin_cross_entropy(ctx, inputs[0], layer, *labels,
                                                        o.divergence_weight, o.options);
    return loss_output(
        {loss.labels.sum + double{o.divergence_weight} * loss.divergence.sum, loss.labels.count});
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    const Matrix logits =
        reference::linear(in.inputs[0], in.weights[0], optional_matrix(in.weights, 1));
    return {Matrix(reference::cross_entropy(logits, *labels, o.options) +
                   o.divergence_weight * reference::twin_divergence(logits, *labels))};
  };
  op.flops = 4 * static_cast<double>(o.pairs) * static_cast<double>(o.width * o.vocabulary);
  return op;
}

void add_vocabulary_losses(std::vector<OpCase>& table) {
  for (const bool bias : {false, true}) {
    table.push_back(
        vocabulary_cross_entropy_case({.rows = 7, .width = 12, .vocabulary = 23, .bias = bias}));
  }
  table.push_back(vocabulary_cross_entropy_case({.rows = 1, .width = 4, .vocabulary = 2}));
  table.push_back(  // nothing was masked in this batch
      vocabulary_cross_entropy_case({.rows = 0, .width = 4, .vocabulary = 5, .bias = true}));
  table.push_back(vocabulary_cross_entropy_case(
      {.rows = 9,
       .width = 12,
       .vocabulary = 37,
       .bias = true,
       .options = {.label_smoothing = 0.1f, .gradient_scale = kGradientScale},
       .ignore_some = true}));
  table.push_back(vocabulary_cross_entropy_case(
      {.rows = 9,
       .width = 12,
       .vocabulary = 37,
       .options = {.label_smoothing = 0.2f, .soft_cap = 3, .gradient_scale = kGradientScale},
       .ignore_some = true}));
  table.push_back(vocabulary_cross_entropy_case(
      {.rows = 260, .width = 24, .vocabulary = 301, .options = {.label_smoothing = 0.1f}}));
  // Logits for several tiles, of 8 Mi at most.
  table.push_back(vocabulary_cross_entropy_case({.rows = 257,
                                                 .width = 2,
                                                 .vocabulary = 70001,
                                                 .bias = true,
                                                 .options = {.label_smoothing = 0.1f},
                                                 .ignore_some = true}));
  table.push_back(vocabulary_kl_divergence_case(
      {.rows = 9, .width = 12, .teacher_width = 7, .vocabulary = 37}));
  table.push_back(vocabulary_kl_divergence_case(
      {.rows = 9,
       .width = 12,
       .teacher_width = 20,
       .vocabulary = 37,
       .bias = true,
       .options = {.temperature = 2, .gradient_scale = kGradientScale}}));
  table.push_back(vocabulary_twin_cross_entropy_case({.pairs = 1, .width = 4, .vocabulary = 2}));
  table.push_back(  // nothing was masked in this batch
      vocabulary_twin_cross_entropy_case({.pairs = 0, .width = 4, .vocabulary = 5, .bias = true}));
  table.push_back(vocabulary_twin_cross_entropy_case(
      {.pairs = 9,
       .width = 12,
       .vocabulary = 37,
       .bias = true,
       .divergence_weight = 5,
       .options = {.label_smoothing = 0.1f, .gradient_scale = kGradientScale},
       .ignore_some = true}));
  // Logits for two tiles.
  table.push_back(vocabulary_twin_cross_entropy_case({.pairs = 129,
                                                      .width = 2,
                                                      .vocabulary = 70001,
                                                      .divergence_weight = 3,
                                                      .ignore_some = true}));
}

const RegisterOps kRegistered("vocabulary_loss", add_vocabulary_losses);

}  // namespace
}  // namespace heed::op_cases
