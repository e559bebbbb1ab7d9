// rope.cc: rotary position embedding.
#include <cmath>
#include <memory>

#include "ops/table/case_tools.h"

namespace heed::reference {

Matrix rope(const Matrix& x, const RopeOptions& o) {
  Matrix y = x;
  const int pairs = o.rotary_dim / 2;
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int i = 0; i < pairs; ++i) {
      // Models are trained with the angle rounded to float, so that is part of the definition.
      const auto frequency = static_cast<float>(std::pow(o.base, -2.0 * i / o.rotary_dim));
      const double angle = static_cast<float>(o.positions[static_cast<size_t>(r)]) * frequency;
      const double cosine = o.magnitude * std::cos(angle), sine = o.magnitude * std::sin(angle);
      const bool half = o.layout == RopeLayout::half;
      for (int head = 0; head < o.heads; ++head) {
        const int64_t first = int64_t{head} * o.head_dim + (half ? i : 2 * i);
        const int64_t second = half ? first + pairs : first + 1;
        y.at(r, first) = x.at(r, first) * cosine - x.at(r, second) * sine;
        y.at(r, second) = x.at(r, first) * sine + x.at(r, second) * cosine;
      }
    }
  }
  return y;
}

}  // namespace heed::reference

namespace heed::op_cases {
namespace {

struct RopeCase {
  int64_t rows = 1;
  int heads = 1, head_dim = 8, rotary_dim = 8;
  RopeLayout layout = RopeLayout::half;
  float magnitude = 1;
  int32_t first_position = 0;
};

OpCase rope_case(const RopeCase& o) {
  constexpr int32_t kStride = 3;  // between the positions of two rows
  struct Data {
    std::vector<int32_t> positions;
    std::vector<float> frequencies;
  };
  constexpr double kBase = 10000;
  const auto data = std::make_shared<Data>();
  for (int64_t r = 0; r < o.rows; ++r) {
    data->positions.push_back(o.first_position + kStride * static_cast<int32_t>(r));
  }
  data->frequencies = rope_frequencies(o.rotary_dim, kBase);
  OpCase op;
  op.op = "rope";
  op.variant = Words()
                   .add(true, o.layout == RopeLayout::half ? "half" : "interleaved")
                   .add(o.rotary_dim != o.head_dim, "partial " + std::to_string(o.rotary_dim))
                   .add(o.magnitude != 1, "magnitude " + number(o.magnitude))
                   .text();
  op.shape = dims({o.rows, o.heads, o.head_dim});
  op.inputs = {{o.rows, int64_t{o.heads} * o.head_dim}};
  op.run = [o, data](Ctx& ctx, Vars inputs, Weights) {
    const RopeTable table = rope_table(ctx, data->positions, data->frequencies, o.magnitude);
    const RopeShape shape{o.heads, o.head_dim, o.layout};
    return output(rope(ctx, inputs[0], table, shape));
  };
  op.reference = [o, data](const ReferenceOperands& in) -> std::vector<Matrix> {
    return {reference::rope(in.inputs[0], {.positions = data->positions,
                                           .heads = o.heads,
                                           .head_dim = o.head_dim,
                                           .rotary_dim = o.rotary_dim,
                                           .base = kBase,
                                           .magnitude = o.magnitude,
                                           .layout = o.layout})};
  };
  set_row_parts(op, o.rows, [o](RowRange range) {
    RopeCase part = o;
    part.first_position = o.first_position + kStride * static_cast<int32_t>(range.begin);
    part.rows = count(range);
    return rope_case(part);
  });
  return op;
}

void add_rope(std::vector<OpCase>& table) {
  for (const RopeLayout layout : {RopeLayout::half, RopeLayout::interleaved}) {
    table.push_back(rope_case({.rows = 1, .layout = layout}));
    table.push_back(rope_case({.rows = 11,
                               .heads = 3,
                               .head_dim = 22,
                               .rotary_dim = 22,
                               .layout = layout,
                               .first_position = 1000}));
    table.push_back(rope_case({.rows = 11,
                               .heads = 3,
                               .head_dim = 20,
                               .rotary_dim = 6,
                               .layout = layout,
                               .magnitude = 1.25f}));
    table.push_back(rope_case(
        {.rows = kManyRows, .heads = 4, .head_dim = 64, .rotary_dim = 64, .layout = layout}));
  }
}

const RegisterOps kRegistered("rope", add_rope);

}  // namespace
}  // namespace heed::op_cases
