// linear.cc: a matmul with bias, activation and dropout.
#include "ops/table/case_tools.h"

namespace heed::reference {

Matrix linear(const Matrix& x, const Matrix& weight, const Matrix* bias) {
  Matrix y(x.rows, weight.rows);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t o = 0; o < y.cols; ++o) {
      double sum = bias ? bias->at(0, o) : 0;
      for (int64_t i = 0; i < x.cols; ++i) sum += x.at(r, i) * weight.at(o, i);
      y.at(r, o) = sum;
    }
  }
  return y;
}

}  // namespace heed::reference

namespace heed::op_cases {
namespace {

struct LinearCase {
  int64_t rows = 1, in = 8, out = 8;
  bool bias = false;
  Activation activation = Activation::none;
  bool slice = false;  // the input is the middle third of a split matrix
  float dropout = 0;
};

OpCase linear_case(const LinearCase& o) {
  OpCase op;
  op.op = "linear";
  op.variant = Words()
                   .add(o.activation != Activation::none, std::string(kernels::name(o.activation)))
                   .add(o.bias, "bias")
                   .add(o.slice, "slice")
                   .add(o.dropout > 0, "dropout")
                   .text();
  op.shape = dims({o.rows, o.in, o.out});
  op.inputs = {{o.rows, o.slice ? 3 * o.in : o.in}};
  op.weights = {{o.out, o.in, fan_in_deviation(o.in)}};
  if (o.bias) op.weights.push_back({1, o.out});
  op.run = [o](Ctx& ctx, Vars inputs, Weights weights) {
    const Linear layer{weights[0], o.bias ? weights[1] : Weight{}};
    if (!o.slice) return output(linear(ctx, inputs[0], layer, o.activation, o.dropout));
    const auto slices = split<3>(ctx, copy_of_input(ctx, inputs[0]), {o.in, o.in, o.in});
    return output(linear(ctx, slices[1], layer, o.activation, o.dropout));
  };
  op.reference = [o](const ReferenceOperands& in) -> std::vector<Matrix> {
    const Matrix x = o.slice ? reference::columns(in.inputs[0], o.in, o.in) : in.inputs[0];
    const Matrix y = reference::activate(
        reference::linear(x, in.weights[0], optional_matrix(in.weights, 1)), o.activation);
    return {reference::dropout(y, in.dropout, o.dropout)};
  };
  op.draws = o.dropout > 0;
  if (o.activation == Activation::relu) op.difference = kReluDifference;
  op.flops = 2 * static_cast<double>(o.rows) * static_cast<double>(o.in * o.out);
  set_row_parts(op, o.rows, [o](RowRange range) {
    LinearCase part = o;
    part.rows = count(range);
    return linear_case(part);
  });
  return op;
}

void add_linear(std::vector<OpCase>& table) {
  for (const kernels::ActivationInfo& info : kernels::kActivations) {
    const Activation activation = info.activation;
    table.push_back(
        linear_case({.rows = 7, .in = 13, .out = 19, .bias = true, .activation = activation}));
    table.push_back(linear_case({.rows = 5, .in = 16, .out = 9, .activation = activation}));
    table.push_back(linear_case(
        {.rows = 9, .in = 10, .out = 31, .bias = true, .activation = activation, .dropout = 0.3f}));
  }
  table.push_back(linear_case({.rows = 1, .in = 24, .out = 33, .bias = true}));
  table.push_back(linear_case({.rows = 1, .in = 1, .out = 1}));
  table.push_back(linear_case({.rows = 0, .in = 4, .out = 3, .bias = true}));
  table.push_back(linear_case({.rows = 6, .in = 11, .out = 14, .bias = true, .slice = true}));
  table.push_back(linear_case({.rows = 6,
                               .in = 11,
                               .out = 14,
                               .bias = true,
                               .activation = Activation::gelu,
                               .slice = true}));
  // Large enough to be shared among threads: by rows, and by columns.
  table.push_back(linear_case(
      {.rows = 517, .in = 65, .out = 130, .bias = true, .activation = Activation::relu}));
  table.push_back(linear_case(
      {.rows = 20, .in = 130, .out = 1031, .bias = true, .activation = Activation::gelu_tanh}));
}

const RegisterOps kRegistered("linear", add_linear);

}  // namespace
}  // namespace heed::op_cases
