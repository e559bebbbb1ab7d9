// gated.cc: the gate of a feed-forward layer.
#include "ops/table/case_tools.h"

namespace heed::reference {

Matrix gated(const Matrix& gate, const Matrix& up, Activation activation) {
  Matrix y = activate(gate, activation);
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] *= up.values[i];
  return y;
}

}  // namespace heed::reference

namespace heed::op_cases {
namespace {

struct GatedCase {
  int64_t rows = 1, width = 8;
  Activation activation = Activation::silu;
  bool one_matrix = false;  // gate and up are the halves of one matrix
};

OpCase gated_case(const GatedCase& o) {
  OpCase op;
  op.op = "gated";
  op.variant = Words()
                   .add(true, std::string(kernels::name(o.activation)))
                   .add(true, o.one_matrix ? "one_matrix" : "two_matrices")
                   .text();
  op.shape = dims({o.rows, o.width});
  op.inputs = {{o.rows, o.one_matrix ? 2 * o.width : o.width}};
  if (!o.one_matrix) op.inputs.push_back(op.inputs[0]);
  op.run = [o](Ctx& ctx, Vars inputs, Weights) {
    if (!o.one_matrix) return output(gated(ctx, inputs[0], inputs[1], o.activation));
    const auto [gate, up] = split<2>(ctx, copy_of_input(ctx, inputs[0]), {o.width, o.width});
    return output(gated(ctx, gate, up, o.activation));
  };
  op.reference = [o](const ReferenceOperands& in) -> std::vector<Matrix> {
    if (!o.one_matrix) return {reference::gated(in.inputs[0], in.inputs[1], o.activation)};
    return {reference::gated(reference::columns(in.inputs[0], 0, o.width),
                             reference::columns(in.inputs[0], o.width, o.width), o.activation)};
  };
  if (o.activation == Activation::relu) op.difference = kReluDifference;
  set_row_parts(op, o.rows, [o](RowRange range) {
    GatedCase part = o;
    part.rows = count(range);
    return gated_case(part);
  });
  return op;
}

void add_gated(std::vector<OpCase>& table) {
  for (const bool one_matrix : {false, true}) {
    table.push_back(gated_case({.rows = 1, .width = 5, .one_matrix = one_matrix}));
    table.push_back(gated_case({.rows = 9, .width = 43, .one_matrix = one_matrix}));
    table.push_back(gated_case({.rows = kManyRows, .width = kManyCols, .one_matrix = one_matrix}));
    for (const kernels::ActivationInfo& info : kernels::kActivations) {
      if (info.activation == Activation::none) continue;
      table.push_back(gated_case(
          {.rows = 7, .width = 21, .activation = info.activation, .one_matrix = one_matrix}));
    }
  }
}

const RegisterOps kRegistered("gated", add_gated);

}  // namespace
}  // namespace heed::op_cases
