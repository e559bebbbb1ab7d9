// norm.cc: layer norm and RMS norm.
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

const RegisterOps kRegistered("norm", add_norm);

}  // namespace
}  // namespace heed::op_cases
