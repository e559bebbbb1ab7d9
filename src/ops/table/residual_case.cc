// residual.cc: residual_add and dropout.
#include "ops/table/case_tools.h"

namespace heed::reference {

Matrix add(const Matrix& a, const Matrix& b) {
  Matrix y = a;
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += b.values[i];
  return y;
}

}  // namespace heed::reference

namespace heed::op_cases {
namespace {

struct ResidualCase {
  int64_t rows = 1, width = 8;
  float dropout = 0;
};

OpCase residual_add_case(const ResidualCase& o) {
  OpCase op;
  op.op = "residual_add";
  op.variant = Words().add(o.dropout > 0, "dropout " + number(o.dropout)).text();
  op.shape = dims({o.rows, o.width});
  op.inputs = {{o.rows, o.width}, {o.rows, o.width}};
  op.run = [o](Ctx& ctx, Vars inputs, Weights) {
    return output(residual_add(ctx, inputs[0], inputs[1], o.dropout));
  };
  op.reference = [o](const ReferenceOperands& in) -> std::vector<Matrix> {
    return {reference::add(in.inputs[0], reference::dropout(in.inputs[1], in.dropout, o.dropout))};
  };
  op.draws = o.dropout > 0;
  set_row_parts(op, o.rows, [o](RowRange range) {
    ResidualCase part = o;
    part.rows = count(range);
    return residual_add_case(part);
  });
  return op;
}

OpCase dropout_case(const ResidualCase& o) {
  OpCase op;
  op.op = "dropout";
  op.variant = number(o.dropout);
  op.shape = dims({o.rows, o.width});
  op.inputs = {{o.rows, o.width}};
  op.run = [o](Ctx& ctx, Vars inputs, Weights) {
    return output(dropout(ctx, inputs[0], o.dropout));
  };
  op.reference = [o](const ReferenceOperands& in) -> std::vector<Matrix> {
    return {reference::dropout(in.inputs[0], in.dropout, o.dropout)};
  };
  op.draws = o.dropout > 0;
  return op;
}

void add_residual(std::vector<OpCase>& table) {
  for (const ResidualCase& shape :
       {ResidualCase{.rows = 1, .width = 5}, ResidualCase{.rows = 9, .width = 43},
        ResidualCase{.rows = kManyRows, .width = kManyCols}}) {
    ResidualCase options = shape;
    table.push_back(residual_add_case(options));
    for (const float p : {0.1f, 0.5f}) {
      options.dropout = p;
      table.push_back(residual_add_case(options));
      table.push_back(dropout_case(options));
    }
  }
}

const RegisterOps kRegistered("residual", add_residual);

}  // namespace
}  // namespace heed::op_cases
