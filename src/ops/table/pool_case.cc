// pool.cc: one row for each sequence.
#include <memory>

#include "ops/table/case_tools.h"

namespace heed::reference {

Matrix pool(const Matrix& x, std::span<const int32_t> offsets, Pooling pooling) {
  Matrix y(static_cast<int64_t>(offsets.size()) - 1, x.cols);
  for (int64_t s = 0; s < y.rows; ++s) {
    const int64_t begin = offsets[static_cast<size_t>(s)];
    const int64_t end = offsets[static_cast<size_t>(s) + 1];
    for (int64_t c = 0; c < x.cols; ++c) {
      double sum = 0;
      for (int64_t r = begin; r < end; ++r) sum += x.at(r, c);
      y.at(s, c) = pooling == Pooling::first  ? x.at(begin, c)
                   : pooling == Pooling::last ? x.at(end - 1, c)
                                              : sum / static_cast<double>(end - begin);
    }
  }
  return y;
}

}  // namespace heed::reference

namespace heed::op_cases {
namespace {

OpCase pool_case(const std::vector<int32_t>& lengths, int64_t width, Pooling pooling) {
  const auto offsets = std::make_shared<const std::vector<int32_t>>(offsets_of(lengths));
  OpCase op;
  op.op = "pool";
  op.variant = pooling == Pooling::first ? "first" : pooling == Pooling::last ? "last" : "mean";
  op.shape = dims({offsets->back(), width}) + " in " + std::to_string(lengths.size());
  op.inputs = {{offsets->back(), width}};
  op.run = [=](Ctx& ctx, Vars inputs, Weights) {
    return output(pool(ctx, inputs[0], *offsets, pooling));
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    return {reference::pool(in.inputs[0], *offsets, pooling)};
  };
  op.parts = [=] {
    std::vector<OpPart> parts;
    for (size_t s = 0; s < lengths.size(); ++s) {
      const auto row = static_cast<int64_t>(s);
      parts.push_back({pool_case({lengths[s]}, width, pooling),
                       {{(*offsets)[s], (*offsets)[s + 1]}},
                       {row, row + 1}});
    }
    return parts;
  };
  return op;
}

void add_pool(std::vector<OpCase>& table) {
  for (const Pooling pooling : {Pooling::first, Pooling::last, Pooling::mean}) {
    table.push_back(pool_case({1}, 5, pooling));
    table.push_back(pool_case({4, 1, 9, 2}, 37, pooling));
  }
}

const RegisterOps kRegistered("pool", add_pool);

}  // namespace
}  // namespace heed::op_cases
