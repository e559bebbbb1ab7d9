// embed.cc: embeddings of tokens, positions and token types.
#include <cmath>
#include <memory>

#include "ops/table/case_tools.h"

namespace heed::reference {

double sinusoid(int64_t position, int64_t column, int64_t width, SinusoidLayout layout) {
  const bool interleaved = layout == SinusoidLayout::interleaved;
  const int64_t pair = interleaved ? column / 2 : column % (width / 2);
  const bool sine = interleaved ? column % 2 == 0 : column < width / 2;
  const double angle =
      static_cast<double>(position) /
      std::pow(10000.0, 2 * static_cast<double>(pair) / static_cast<double>(width));
  return sine ? std::sin(angle) : std::cos(angle);
}

}  // namespace heed::reference

namespace heed::op_cases {
namespace {

struct EmbedCase {
  int64_t rows = 1, width = 8, vocabulary = 11;
  float scale = 1;
  enum class Positions { none, learned, sinusoidal, sinusoidal_half } positions = Positions::none;
  int position_offset = 0;
  int64_t token_types = 0;
  float dropout = 0;
  int64_t first_row = 0;  // of a longer batch, whose ids go on as if it were all here
};

OpCase embed_case(const EmbedCase& o) {
  using Positions = EmbedCase::Positions;
  constexpr int64_t kPositionCount = 13;
  const int64_t table_rows = kPositionCount + o.position_offset;
  const bool learned = o.positions == Positions::learned;
  const bool sinusoidal = o.positions != Positions::none && !learned;
  const SinusoidLayout layout = o.positions == Positions::sinusoidal_half
                                    ? SinusoidLayout::half
                                    : SinusoidLayout::interleaved;
  struct Data {
    std::vector<int32_t> tokens, positions, types;
    std::vector<float> sinusoids;
  };
  const auto data = std::make_shared<Data>();
  const RowRange rows{o.first_row, o.first_row + o.rows};
  data->tokens = drawn_list(kTokens, rows, o.vocabulary);
  data->positions = drawn_list(kPositions, rows, kPositionCount);
  if (o.token_types > 0) data->types = drawn_list(kTypes, rows, o.token_types);
  if (sinusoidal) data->sinusoids = sinusoidal_table(table_rows, o.width, layout);

  OpCase op;
  op.op = "embed";
  op.variant = Words()
                   .add(o.scale != 1, "scale")
                   .add(learned, "learned")
                   .add(o.positions == Positions::sinusoidal, "sinusoidal")
                   .add(o.positions == Positions::sinusoidal_half, "sinusoidal_half")
                   .add(o.position_offset != 0, "offset " + std::to_string(o.position_offset))
                   .add(o.token_types > 0, "types")
                   .add(o.dropout > 0, "dropout")
                   .text();
  op.shape = dims({o.rows, o.width}) + " of " + std::to_string(o.vocabulary);
  op.weights = {{o.vocabulary, o.width}};
  if (learned) op.weights.push_back({table_rows, o.width});
  if (o.token_types > 0) op.weights.push_back({o.token_types, o.width});
  op.run = [=](Ctx& ctx, Vars, Weights weights) {
    Embedding embedding{.tokens = weights[0]};
    embedding.scale = o.scale;
    if (learned) embedding.positions = weights[1];
    if (sinusoidal) embedding.positions = {{data->sinusoids.data(), table_rows, o.width}};
    embedding.position_offset = o.position_offset;
    if (o.token_types > 0) embedding.token_types = weights.back();
    embedding.dropout = o.dropout;
    const Batch batch{data->tokens, data->positions, data->types, {}};
    return output(embed(ctx, batch, embedding));
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    Matrix y(o.rows, o.width);
    for (int64_t r = 0; r < o.rows; ++r) {
      const auto at = static_cast<size_t>(r);
      const int64_t position = data->positions[at] + o.position_offset;
      for (int64_t c = 0; c < o.width; ++c) {
        double sum = o.scale * in.weights[0].at(data->tokens[at], c);
        if (learned) sum += in.weights[1].at(position, c);
        if (sinusoidal) sum += reference::sinusoid(position, c, o.width, layout);
        if (o.token_types > 0) sum += in.weights.back().at(data->types[at], c);
        y.at(r, c) = sum;
      }
    }
    return {reference::dropout(y, in.dropout, o.dropout)};
  };
  op.draws = o.dropout > 0;
  set_row_parts(op, o.rows, [o](RowRange range) {
    EmbedCase part = o;
    part.first_row = o.first_row + range.begin, part.rows = count(range);
    return embed_case(part);
  });
  return op;
}

void add_embed(std::vector<OpCase>& table) {
  using Positions = EmbedCase::Positions;
  table.push_back(embed_case({.rows = 0}));
  table.push_back(embed_case({.rows = 1}));
  table.push_back(embed_case({.rows = 19, .width = 17, .scale = 4}));
  table.push_back(embed_case({.rows = 19, .width = 10, .positions = Positions::learned}));
  table.push_back(
      embed_case({.rows = 19, .width = 33, .positions = Positions::learned, .position_offset = 2}));
  table.push_back(
      embed_case({.rows = 19, .width = 10, .scale = 3, .positions = Positions::sinusoidal}));
  table.push_back(embed_case({.rows = 19, .width = 10, .positions = Positions::sinusoidal_half}));
  table.push_back(embed_case({.rows = 19, .width = 10, .token_types = 2}));
  table.push_back(embed_case({.rows = 23, .width = 37, .dropout = 0.3f}));
  table.push_back(embed_case({.rows = kManyRows,
                              .width = kManyCols,
                              .vocabulary = 97,
                              .scale = 2,
                              .positions = Positions::learned,
                              .position_offset = 2,
                              .token_types = 3,
                              .dropout = 0.1f}));
}

const RegisterOps kRegistered("embed", add_embed);

}  // namespace
}  // namespace heed::op_cases
