// losses.cc: cross-entropy of logits, squared error, cosine distance.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "ops/table/case_tools.h"

namespace heed::reference {

std::vector<double> negative_log_softmax(const Matrix& z, int64_t row, double temperature) {
  std::vector<double> result(static_cast<size_t>(z.cols));
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t c = 0; c < z.cols; ++c) max = std::max(max, z.at(row, c) / temperature);
  double sum = 0;
  for (int64_t c = 0; c < z.cols; ++c) sum += std::exp(z.at(row, c) / temperature - max);
  for (int64_t c = 0; c < z.cols; ++c) {
    result[static_cast<size_t>(c)] = max + std::log(sum) - z.at(row, c) / temperature;
  }
  return result;
}

double cross_entropy(const Matrix& logits, std::span<const int32_t> labels,
                     const CrossEntropyOptions& options) {
  Matrix z = logits;
  if (options.soft_cap > 0) {
    for (double& value : z.values) value = options.soft_cap * std::tanh(value / options.soft_cap);
  }
  const double smoothing = options.label_smoothing;
  double sum = 0;
  for (int64_t r = 0; r < z.rows; ++r) {
    const int32_t label = labels[static_cast<size_t>(r)];
    if (label == kIgnoreLabel) continue;
    const std::vector<double> loss = negative_log_softmax(z, r, 1);
    double average = 0;
    for (const double s : loss) average += s / static_cast<double>(z.cols);
    sum += (1 - smoothing) * loss[static_cast<size_t>(label)] + smoothing * average;
  }
  return sum;
}

double squared_error(const Matrix& x, const Matrix& target) {
  double sum = 0;
  for (size_t i = 0; i < x.values.size(); ++i) sum += std::pow(x.values[i] - target.values[i], 2);
  return sum / static_cast<double>(x.cols);
}

namespace {

double cosine_distance(const Matrix& x, const Matrix& target) {
  double sum = 0;
  for (int64_t r = 0; r < x.rows; ++r) {
    double xx = 0, tt = 0, xt = 0;
    for (int64_t c = 0; c < x.cols; ++c) {
      xx += x.at(r, c) * x.at(r, c);
      tt += target.at(r, c) * target.at(r, c);
      xt += x.at(r, c) * target.at(r, c);
    }
    sum += 1 - xt / std::sqrt(xx * tt);
  }
  return sum;
}

}  // namespace
}  // namespace heed::reference

namespace heed::op_cases {
namespace {

struct ClassCase {
  int64_t rows = 1, classes = 5;
  CrossEntropyOptions options{};
  bool ignore_some = false;
};

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
  return op;
}

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

OpCase squared_error_case(int64_t rows, int64_t width, float gradient_scale) {
  return comparison_case({"squared_error", squared_error, reference::squared_error}, rows, width,
                         gradient_scale);
}

OpCase cosine_distance_case(int64_t rows, int64_t width, float gradient_scale) {
  return comparison_case({"cosine_distance", cosine_distance, reference::cosine_distance}, rows,
                         width, gradient_scale);
}

void add_losses(std::vector<OpCase>& table) {
  table.push_back(cross_entropy_case({.rows = 1, .classes = 2}));
  table.push_back(cross_entropy_case(
      {.rows = 9,
       .classes = 37,
       .options = {.label_smoothing = 0.1f, .soft_cap = 4, .gradient_scale = kGradientScale},
       .ignore_some = true}));
  table.push_back(cross_entropy_case({.rows = kManyRows, .classes = kManyCols}));
  table.push_back(squared_error_case(1, 1, 1));
  table.push_back(squared_error_case(9, 5, kGradientScale));
  table.push_back(squared_error_case(kManyRows, kManyCols, 1));
  table.push_back(cosine_distance_case(9, 21, kGradientScale));
  table.push_back(cosine_distance_case(kManyRows, kManyCols, 1));
}

const RegisterOps kRegistered("losses", add_losses);

}  // namespace
}  // namespace heed::op_cases
