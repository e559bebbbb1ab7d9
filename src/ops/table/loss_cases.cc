// The table's cases of losses.
#include <memory>
#include <utility>

#include "ops/table/op_case_parts.h"
#include "ops/table/op_cases.h"

namespace heed::op_cases {
namespace {

OpResult loss_output(const LossSum& loss) { return {{}, {}, loss}; }

std::vector<int32_t> drawn_labels(RowRange rows, int64_t classes, bool ignore_some) {
  std::vector<int32_t> labels = drawn_list(kLabels, rows, classes);
  for (int64_t row = rows.begin; ignore_some && row < rows.end; ++row) {
    if (row % 3 == 1) labels[static_cast<size_t>(row - rows.begin)] = kIgnoreLabel;
  }
  return labels;
}

// Each row alone: the sum of their losses is the loss of them all. make(options) builds the case.
// Not for huge weights, which each part draws again.
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

std::string loss_variant(const CrossEntropyOptions& o, bool ignore_some, Words words = {}) {
  return words.add(o.label_smoothing > 0, "label_smoothing " + number(o.label_smoothing))
      .add(o.soft_cap > 0, "soft_cap " + number(o.soft_cap))
      .add(ignore_some, "ignored rows")
      .text();
}

// A loss of rows [rows, width] by way of logits over a vocabulary, weights [vocabulary, width].
OpCase vocabulary_loss(const char* name, int64_t rows, int64_t width, int64_t vocabulary,
                       bool bias) {
  OpCase op;
  op.op = name;
  op.shape = dims({rows, width, vocabulary});
  op.inputs = {{rows, width}};
  op.weights = {{vocabulary, width, 2 * fan_in_deviation(width)}};
  if (bias) op.weights.push_back({1, vocabulary});
  op.is_loss = true;
  op.limit = Limit::gemm;
  return op;
}

}  // namespace

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
  const double product =
      2 * static_cast<double>(o.rows) * static_cast<double>(o.width * o.vocabulary);
  op.forward = {product, kFloatBytes * static_cast<double>((o.rows + o.vocabulary) * o.width)};
  op.backward = {2 * product, 2 * op.forward.bytes};
  set_loss_parts(op, o, vocabulary_cross_entropy_case);
  return op;
}

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
  op.forward.flops = 2 * static_cast<double>(o.rows * o.vocabulary) *
                     static_cast<double>(o.width + o.teacher_width);
  set_loss_parts(op, o, vocabulary_kl_divergence_case);
  return op;
}

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
  op.forward.flops = 4 * static_cast<double>(o.pairs) * static_cast<double>(o.width * o.vocabulary);
  return op;
}

OpCase cross_entropy_case(const ClassCase& o) {
  const auto labels = std::make_shared<const std::vector<int32_t>>(
      drawn_labels({0, o.rows}, o.classes, o.ignore_some));
  OpCase op;
  op.op = "cross_entropy";
  op.variant = loss_variant(o.options, o.ignore_some);
  op.shape = dims({o.rows, o.classes});
  op.inputs = {{o.rows, o.classes, 2}};
  op.is_loss = true;
  op.gradient_scale = o.options.gradient_scale;
  op.run = [=](Ctx& ctx, Vars inputs, Weights) {
    return loss_output(cross_entropy(ctx, inputs[0], *labels, o.options));
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    return {Matrix(reference::cross_entropy(in.inputs[0], *labels, o.options))};
  };
  op.forward.bytes = op.backward.bytes = kFloatBytes * static_cast<double>(o.rows * o.classes);
  return op;
}

namespace {

// The two losses that compare with a given matrix.
struct Comparison {
  const char* op;
  LossSum (*run)(Ctx&, Var, ConstMat, float);
  double (*reference)(const Matrix&, const Matrix&);
};

OpCase comparison_case(const Comparison& loss, int64_t rows, int64_t width, float gradient_scale) {
  const auto target = std::make_shared<const Constants>(rows, width, kTargets);
  OpCase op;
  op.op = loss.op;
  op.variant = "plain";
  op.shape = dims({rows, width});
  op.inputs = {{rows, width}};
  op.is_loss = true;
  op.gradient_scale = gradient_scale;
  op.run = [=](Ctx& ctx, Vars inputs, Weights) {
    return loss_output(loss.run(ctx, inputs[0], target->view, gradient_scale));
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    return {Matrix(loss.reference(in.inputs[0], Matrix(target->view)))};
  };
  return op;
}

}  // namespace

OpCase squared_error_case(int64_t rows, int64_t width, float gradient_scale) {
  return comparison_case({"squared_error", squared_error, reference::squared_error}, rows, width,
                         gradient_scale);
}

OpCase cosine_distance_case(int64_t rows, int64_t width, float gradient_scale) {
  return comparison_case({"cosine_distance", cosine_distance, reference::cosine_distance}, rows,
                         width, gradient_scale);
}

}  // namespace heed::op_cases
