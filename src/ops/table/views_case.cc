// views.cc: split, scale, take_rows and put_rows.
#include <memory>

#include "ops/table/case_tools.h"

namespace heed::reference {

Matrix scale(const Matrix& x, double factor) {
  Matrix y = x;
  for (double& value : y.values) value *= factor;
  return y;
}

Matrix take_rows(const Matrix& x, std::span<const int32_t> indices) {
  Matrix y(static_cast<int64_t>(indices.size()), x.cols);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t c = 0; c < y.cols; ++c) y.at(r, c) = x.at(indices[static_cast<size_t>(r)], c);
  }
  return y;
}

}  // namespace heed::reference

namespace heed::op_cases {
namespace {

struct SplitCase {
  int64_t rows = 1;
  std::vector<int64_t> widths = {4, 4};  // two or three
  bool skip_middle = false;              // the second slice is unused
  bool after_tanh = false;  // whose backward needs the value that the slices are then scaled in
};

OpCase split_case(const SplitCase& o) {
  constexpr float kSliceFactor = 0.5f;
  OpCase op;
  op.op = "split";
  op.variant = Words()
                   .add(true, std::to_string(o.widths.size()) + " slices")
                   .add(o.skip_middle, "one unused")
                   .add(o.after_tanh, "after tanh")
                   .text();
  int64_t width = 0;
  for (const int64_t w : o.widths) width += w;
  op.shape = dims({o.rows, width});
  op.inputs = {{o.rows, width}};
  if (o.after_tanh) op.weights = {{width, width, fan_in_deviation(width)}};
  op.run = [o](Ctx& ctx, Vars inputs, Weights weights) {
    OpResult result;
    const Var x = o.after_tanh ? linear(ctx, inputs[0], {weights[0]}, Activation::tanh)
                               : copy_of_input(ctx, inputs[0]);
    if (o.widths.size() == 2) {
      for (const Var& slice : split<2>(ctx, x, {o.widths[0], o.widths[1]})) {
        result.outputs.push_back(slice);
      }
    } else {
      for (const Var& slice : split<3>(ctx, x, {o.widths[0], o.widths[1], o.widths[2]})) {
        result.outputs.push_back(slice);
      }
    }
    if (o.skip_middle) result.outputs.erase(result.outputs.begin() + 1);
    for (Var& slice : result.outputs) {
      if (o.after_tanh) slice = scale(ctx, slice, kSliceFactor);
    }
    return result;
  };
  op.reference = [o](const ReferenceOperands& in) {
    const Matrix x =
        o.after_tanh ? reference::scale(reference::activate(
                                            reference::linear(in.inputs[0], in.weights[0], nullptr),
                                            Activation::tanh),
                                        kSliceFactor)
                     : in.inputs[0];
    std::vector<Matrix> slices;
    int64_t column = 0;
    for (const int64_t w : o.widths) {
      slices.push_back(reference::columns(x, column, w));
      column += w;
    }
    if (o.skip_middle) slices.erase(slices.begin() + 1);
    return slices;
  };
  return op;
}

struct ScaleCase {
  int64_t rows = 1, width = 8;
  float factor = 1;
};

OpCase scale_case(const ScaleCase& o) {
  OpCase op;
  op.op = "scale";
  op.variant = number(o.factor);
  op.shape = dims({o.rows, o.width});
  op.inputs = {{o.rows, o.width}};
  op.run = [o](Ctx& ctx, Vars inputs, Weights) { return output(scale(ctx, inputs[0], o.factor)); };
  op.reference = [o](const ReferenceOperands& in) -> std::vector<Matrix> {
    return {reference::scale(in.inputs[0], o.factor)};
  };
  set_row_parts(op, o.rows, [o](RowRange range) {
    ScaleCase part = o;
    part.rows = count(range);
    return scale_case(part);
  });
  return op;
}

struct TakeRowsCase {
  int64_t rows = 1, width = 8;
  std::vector<int32_t> indices{};
};

OpCase take_rows_case(const TakeRowsCase& o) {
  const auto indices = std::make_shared<const std::vector<int32_t>>(o.indices);
  OpCase op;
  op.op = "take_rows";
  op.variant = std::to_string(o.indices.size()) + " rows";
  op.shape = dims({o.rows, o.width});
  op.inputs = {{o.rows, o.width}};
  op.run = [indices](Ctx& ctx, Vars inputs, Weights) {
    return output(take_rows(ctx, inputs[0], *indices));
  };
  op.reference = [indices](const ReferenceOperands& in) -> std::vector<Matrix> {
    return {reference::take_rows(in.inputs[0], *indices)};
  };
  op.parts = [o] {
    std::vector<OpPart> parts;
    const auto last = static_cast<int64_t>(o.indices.size()) - 1;
    for (const int64_t i : {int64_t{0}, last / 2, last}) {
      TakeRowsCase part = o;
      part.indices = {o.indices[static_cast<size_t>(i)]};
      parts.push_back({take_rows_case(part), {{0, o.rows}}, {i, i + 1}});
    }
    return parts;
  };
  return op;
}

// indices: none twice
OpCase put_rows_case(const TakeRowsCase& o) {
  const auto indices = std::make_shared<const std::vector<int32_t>>(o.indices);
  OpCase op;
  op.op = "put_rows";
  op.variant = std::to_string(o.indices.size()) + " rows";
  op.shape = dims({o.rows, o.width});
  op.inputs = {{o.rows, o.width}, {static_cast<int64_t>(o.indices.size()), o.width}};
  op.run = [indices](Ctx& ctx, Vars inputs, Weights) {
    return output(put_rows(ctx, inputs[0], inputs[1], *indices));
  };
  op.reference = [indices](const ReferenceOperands& in) -> std::vector<Matrix> {
    Matrix y = in.inputs[0];
    for (size_t i = 0; i < indices->size(); ++i) {
      for (int64_t c = 0; c < y.cols; ++c) {
        y.at((*indices)[i], c) = in.inputs[1].at(static_cast<int64_t>(i), c);
      }
    }
    return {y};
  };
  return op;
}

void add_views(std::vector<OpCase>& table) {
  table.push_back(scale_case({.rows = 1, .width = 5, .factor = 0.37f}));
  table.push_back(scale_case({.rows = 9, .width = 43, .factor = 0.37f}));
  table.push_back(scale_case({.rows = kManyRows, .width = kManyCols, .factor = 0.37f}));
  table.push_back(split_case({.rows = 1, .widths = {3, 4}}));
  table.push_back(split_case({.rows = 7, .widths = {5, 9, 2}}));
  table.push_back(split_case({.rows = 7, .widths = {5, 9, 2}, .skip_middle = true}));
  table.push_back(split_case({.rows = 7, .widths = {5, 9, 2}, .after_tanh = true}));
  table.push_back(
      split_case({.rows = kManyRows, .widths = {64, kManyCols, 33}, .skip_middle = true}));
  table.push_back(take_rows_case({.rows = 6, .width = 19, .indices = {5, 0, 3, 3, 5, 5}}));
  table.push_back(take_rows_case({.rows = 6, .width = 1, .indices = {2}}));
  table.push_back(put_rows_case({.rows = 6, .width = 19, .indices = {5, 0, 3}}));
  table.push_back(put_rows_case({.rows = 3, .width = 2, .indices = {1}}));
  std::vector<int32_t> many;
  for (int32_t i = 0; i < 600; ++i) many.push_back(i * 7 % 50);
  table.push_back(take_rows_case({.rows = 50, .width = 91, .indices = many}));
}

const RegisterOps kRegistered("views", add_views);

}  // namespace
}  // namespace heed::op_cases
