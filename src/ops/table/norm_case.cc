// norm.cc: layer norm and RMS norm of rows, and of the heads of a row.
#include <cmath>

#include "ops/table/case_tools.h"

namespace heed::reference {

Matrix norm(const Matrix& x, const NormOptions& options) {
  const bool centred = options.kind == NormKind::layer_norm;
  const auto width = static_cast<double>(x.cols);
  Matrix y(x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    double mean = 0, square = 0;
    for (int64_t c = 0; centred && c < x.cols; ++c) mean += x.at(r, c) / width;
    for (int64_t c = 0; c < x.cols; ++c) square += std::pow(x.at(r, c) - mean, 2) / width;
    for (int64_t c = 0; c < x.cols; ++c) {
      y.at(r, c) = (x.at(r, c) - mean) / std::sqrt(square + options.eps) *
                       (options.gamma_offset + options.gamma->at(0, c)) +
                   (options.beta ? options.beta->at(0, c) : 0);
    }
  }
  return y;
}

}  // namespace heed::reference

namespace heed::op_cases {
namespace {

struct NormCase {
  NormKind kind = NormKind::layer_norm;
  int64_t rows = 1, width = 8;
  bool beta = false;
  float gamma_offset = 0;
  float eps = 1e-5f;
};

OpCase norm_case(const NormCase& o) {
  OpCase op;
  op.op = o.kind == NormKind::layer_norm ? "layer_norm" : "rms_norm";
  op.variant = Words()
                   .add(o.beta, "beta")
                   .add(o.gamma_offset != 0, "gamma_offset " + number(o.gamma_offset))
                   .text();
  op.shape = dims({o.rows, o.width});
  // Not centred, as hidden states are not.
  op.inputs = {{.rows = o.rows, .cols = o.width, .deviation = 2, .mean = 0.5f}};
  op.weights = {{.rows = 1, .cols = o.width, .deviation = 0.5f, .mean = 1 - o.gamma_offset}};
  if (o.beta) op.weights.push_back({1, o.width});
  op.run = [o](Ctx& ctx, Vars inputs, Weights weights) {
    return output(norm(ctx, inputs[0],
                       {.kind = o.kind,
                        .gamma = weights[0],
                        .beta = o.beta ? weights[1] : Weight{},
                        .eps = o.eps,
                        .gamma_offset = o.gamma_offset}));
  };
  op.reference = [o](const ReferenceOperands& in) -> std::vector<Matrix> {
    return {reference::norm(in.inputs[0], {.kind = o.kind,
                                           .gamma = &in.weights[0],
                                           .beta = optional_matrix(in.weights, 1),
                                           .eps = o.eps,
                                           .gamma_offset = o.gamma_offset})};
  };
  // The norm of one number is a constant, its gradient a difference of terms of this size.
  if (o.width == 1) op.smallest_gradient = 1 / std::sqrt(o.eps);
  set_row_parts(op, o.rows, [o](RowRange range) {
    NormCase part = o;
    part.rows = count(range);
    return norm_case(part);
  });
  return op;
}

struct HeadNormCase {
  NormKind kind = NormKind::rms_norm;
  int64_t rows = 1;
  int heads = 2;
  int64_t head_dim = 8;
  bool beta = false;
  bool slice = false;  // the input is the middle third of a split matrix
};

OpCase head_norm_case(const HeadNormCase& o) {
  const int64_t width = o.heads * o.head_dim;
  OpCase op;
  op.op = "head_norm";
  op.variant = Words()
                   .add(true, o.kind == NormKind::layer_norm ? "layer_norm" : "rms_norm")
                   .add(o.beta, "beta")
                   .add(o.slice, "slice")
                   .text();
  op.shape = dims({o.rows, o.heads, o.head_dim});
  op.inputs = {{.rows = o.rows, .cols = o.slice ? 3 * width : width, .deviation = 2, .mean = 0.5f}};
  op.weights = {{.rows = 1, .cols = o.head_dim, .deviation = 0.5f, .mean = 1}};
  if (o.beta) op.weights.push_back({1, o.head_dim});
  op.run = [o, width](Ctx& ctx, Vars inputs, Weights weights) {
    const Norm layer{.kind = o.kind, .gamma = weights[0], .beta = o.beta ? weights[1] : Weight{}};
    Var x = inputs[0];
    if (o.slice) x = split<3>(ctx, copy_of_input(ctx, x), {width, width, width})[1];
    return output(head_norm(ctx, x, layer, o.heads));
  };
  op.reference = [o, width](const ReferenceOperands& in) -> std::vector<Matrix> {
    // In row-major order the heads of [rows, heads · head_dim] are the rows of
    // [rows · heads, head_dim].
    Matrix x = o.slice ? reference::columns(in.inputs[0], width, width) : in.inputs[0];
    x.rows = o.rows * o.heads, x.cols = o.head_dim;
    Matrix y = reference::norm(
        x, {.kind = o.kind, .gamma = &in.weights[0], .beta = optional_matrix(in.weights, 1)});
    y.rows = o.rows, y.cols = width;
    return {y};
  };
  set_row_parts(op, o.rows, [o](RowRange range) {
    HeadNormCase part = o;
    part.rows = count(range);
    return head_norm_case(part);
  });
  return op;
}

void add_norm(std::vector<OpCase>& table) {
  for (const int64_t width : {1, 3, 8, 37, 128}) {
    table.push_back(norm_case({.rows = 5, .width = width, .beta = true}));
    table.push_back(norm_case({.kind = NormKind::rms_norm, .rows = 5, .width = width}));
  }
  table.push_back(norm_case({.rows = 0, .width = 20, .beta = true}));
  table.push_back(norm_case({.rows = 1, .width = 20}));
  table.push_back(norm_case({.rows = 70, .width = 20, .eps = 0.5f}));
  table.push_back(norm_case(
      {.kind = NormKind::rms_norm, .rows = 9, .width = 24, .gamma_offset = 1, .eps = 1e-6f}));
  table.push_back(norm_case({.rows = kManyRows, .width = kManyCols, .beta = true}));
  table.push_back(norm_case({.kind = NormKind::rms_norm, .rows = kManyRows, .width = kManyCols}));
}

void add_head_norm(std::vector<OpCase>& table) {
  for (const bool slice : {false, true}) {
    table.push_back(head_norm_case({.rows = 1, .heads = 1, .slice = slice}));
    table.push_back(head_norm_case({.rows = 7, .heads = 3, .head_dim = 20, .slice = slice}));
    table.push_back(head_norm_case({.kind = NormKind::layer_norm,
                                    .rows = 70,
                                    .heads = 4,
                                    .head_dim = 17,
                                    .beta = true,
                                    .slice = slice}));
    table.push_back(head_norm_case({.rows = 150, .heads = 8, .head_dim = 64, .slice = slice}));
  }
}

const RegisterOps kNorm("norm", add_norm);
const RegisterOps kHeadNorm("norm of heads", add_head_norm);

}  // namespace
}  // namespace heed::op_cases
