#include "ops/op_cases.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace heed::op_cases {
namespace {

using reference::Matrix;

using Vars = std::span<const Var>;
using Weights = std::span<const Weight>;

constexpr double kFloatBytes = sizeof(float);

// With hundreds of thousands of sums before it, ReLU's kink is within reach of the usual step.
constexpr double kReluDifference = 1e-7;

// Streams of the table's generator, one for each kind of side input.
enum Stream : uint32_t { kTokens = 1000, kPositions, kTypes, kLabels, kTargets };

// The i-th number of a stream, in [0, limit). By index, so that row 5 alone draws what row 5 of a
// batch draws.
int32_t drawn(Stream stream, int64_t i, int64_t limit) {
  const RandomKey key{kTableSeed, 0, stream};
  return static_cast<int32_t>(random_block(key, static_cast<uint64_t>(i))[0] % limit);
}

std::vector<int32_t> drawn_list(Stream stream, RowRange rows, int64_t limit) {
  std::vector<int32_t> list;
  for (int64_t i = rows.begin; i < rows.end; ++i) list.push_back(drawn(stream, i, limit));
  return list;
}

// Numbers that are neither input nor weight: a teacher's, a regression's targets.
struct Constants {
  Constants(int64_t rows, int64_t cols, Stream stream, float deviation = 1)
      : values(static_cast<size_t>(rows * cols)), view(values.data(), rows, cols) {
    Random random({kTableSeed, 1, stream});
    for (float& value : values) value = deviation * random.normal();
  }
  Constants(const Constants&) = delete;

  std::vector<float> values;
  ConstMat view;
};

// "bias gelu in_out" from the words whose condition holds; "plain" when none does.
class Words {
 public:
  Words& add(bool condition, const std::string& word) {
    if (!condition) return *this;
    if (!text_.empty()) text_ += ' ';
    text_ += word;
    return *this;
  }
  std::string text() const { return text_.empty() ? "plain" : text_; }

 private:
  std::string text_;
};

std::string dims(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (const int64_t size : sizes) {
    if (!text.empty()) text += 'x';
    text += std::to_string(size);
  }
  return text;
}

std::string number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::vector<int32_t> offsets_of(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> offsets = {0};
  for (const int32_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

OpResult output(const Var& y) { return {{y}, {}, {}}; }
OpResult loss_output(const LossSum& loss) { return {{}, {}, loss}; }

// A copy to work in place on: the operands of a case are run on more than once.
Var own(Ctx& ctx, const Var& x) { return scale(ctx, x, 1); }

const Matrix* optional_matrix(const std::vector<Matrix>& list, size_t i) {
  return i < list.size() ? &list[i] : nullptr;
}

float fan_in_deviation(int64_t in) { return 1 / std::sqrt(static_cast<float>(in)); }

// First, last and a few in the middle: of an op whose rows do not know of each other. make(rows)
// builds the case of these rows alone.
void set_row_parts(OpCase& op, int64_t rows, const std::function<OpCase(RowRange)>& make) {
  if (rows == 0) return;
  const size_t inputs = op.inputs.size();
  op.parts = [=] {
    std::vector<OpPart> parts;
    for (const RowRange range : {RowRange{0, 1}, RowRange{rows / 2, std::min(rows / 2 + 3, rows)},
                                 RowRange{rows - 1, rows}}) {
      parts.push_back({make(range), std::vector<RowRange>(inputs, range), range});
    }
    return parts;
  };
}

int64_t count(RowRange range) { return range.end - range.begin; }

}  // namespace

// ---- embed -----------------------------------------------------------------------------------

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
  const double elements = static_cast<double>(o.rows * o.width);
  op.forward.bytes = kFloatBytes * 2 * elements;
  // The gradient is dense: every row of the table is written, most of them with zeros.
  op.backward.bytes = kFloatBytes * (elements + static_cast<double>(o.vocabulary * o.width));
  set_row_parts(op, o.rows, [o](RowRange range) {
    EmbedCase part = o;
    part.first_row = o.first_row + range.begin, part.rows = count(range);
    return embed_case(part);
  });
  return op;
}

// ---- linear ----------------------------------------------------------------------------------

OpCase linear_case(const LinearCase& o) {
  OpCase op;
  op.op = "linear";
  op.variant = Words()
                   .add(o.activation != Activation::none, kernels::name(o.activation))
                   .add(o.bias, "bias")
                   .add(o.layout == LinearLayout::in_out, "in_out")
                   .add(o.slice, "slice")
                   .add(o.dropout > 0, "dropout")
                   .text();
  op.shape = dims({o.rows, o.in, o.out});
  op.inputs = {{o.rows, o.slice ? 3 * o.in : o.in}};
  const bool out_in = o.layout == LinearLayout::out_in;
  op.weights = {{out_in ? o.out : o.in, out_in ? o.in : o.out, fan_in_deviation(o.in)}};
  if (o.bias) op.weights.push_back({1, o.out});
  op.run = [o](Ctx& ctx, Vars inputs, Weights weights) {
    const Linear layer{weights[0], o.bias ? weights[1] : Weight{}, o.layout};
    if (!o.slice) return output(linear(ctx, inputs[0], layer, o.activation, o.dropout));
    const auto slices = split<3>(ctx, own(ctx, inputs[0]), {o.in, o.in, o.in});
    return output(linear(ctx, slices[1], layer, o.activation, o.dropout));
  };
  op.reference = [o](const ReferenceOperands& in) -> std::vector<Matrix> {
    const Matrix x = o.slice ? reference::columns(in.inputs[0], o.in, o.in) : in.inputs[0];
    const Matrix y = reference::activate(
        reference::linear(x, in.weights[0], optional_matrix(in.weights, 1), o.layout),
        o.activation);
    return {reference::dropout(y, in.dropout, o.dropout)};
  };
  op.draws = o.dropout > 0;
  if (o.activation == Activation::relu) op.difference = kReluDifference;
  const auto rows = static_cast<double>(o.rows), in = static_cast<double>(o.in);
  const auto out = static_cast<double>(o.out);
  op.forward = {2 * rows * in * out, kFloatBytes * (rows * in + in * out + rows * out)};
  op.backward = {4 * rows * in * out, kFloatBytes * 2 * (rows * in + in * out + rows * out)};
  op.limit = Limit::gemm;
  set_row_parts(op, o.rows, [o](RowRange range) {
    LinearCase part = o;
    part.rows = count(range);
    return linear_case(part);
  });
  return op;
}

// ---- norm ------------------------------------------------------------------------------------

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
  const double bytes = kFloatBytes * static_cast<double>(o.rows * o.width);
  op.forward.bytes = 2 * bytes;
  op.backward.bytes = 3 * bytes;
  set_row_parts(op, o.rows, [o](RowRange range) {
    NormCase part = o;
    part.rows = count(range);
    return norm_case(part);
  });
  return op;
}

// ---- element-wise ----------------------------------------------------------------------------

OpCase residual_add_case(const ElementwiseCase& o) {
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
  const double bytes = kFloatBytes * static_cast<double>(o.rows * o.width);
  op.forward.bytes = 3 * bytes;
  op.backward.bytes = 2 * bytes;  // d_x is d_y itself, handed over
  set_row_parts(op, o.rows, [o](RowRange range) {
    ElementwiseCase part = o;
    part.rows = count(range);
    return residual_add_case(part);
  });
  return op;
}

OpCase dropout_case(const ElementwiseCase& o) {
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
  op.forward.bytes = op.backward.bytes = kFloatBytes * 2 * static_cast<double>(o.rows * o.width);
  return op;
}

OpCase scale_case(const ElementwiseCase& o) {
  OpCase op;
  op.op = "scale";
  op.variant = number(o.factor);
  op.shape = dims({o.rows, o.width});
  op.inputs = {{o.rows, o.width}};
  op.run = [o](Ctx& ctx, Vars inputs, Weights) { return output(scale(ctx, inputs[0], o.factor)); };
  op.reference = [o](const ReferenceOperands& in) -> std::vector<Matrix> {
    return {reference::scale(in.inputs[0], o.factor)};
  };
  op.forward.bytes = op.backward.bytes = kFloatBytes * 2 * static_cast<double>(o.rows * o.width);
  set_row_parts(op, o.rows, [o](RowRange range) {
    ElementwiseCase part = o;
    part.rows = count(range);
    return scale_case(part);
  });
  return op;
}

OpCase gated_case(const GatedCase& o) {
  OpCase op;
  op.op = "gated";
  op.variant = Words()
                   .add(true, kernels::name(o.activation))
                   .add(true, o.one_matrix ? "one_matrix" : "two_matrices")
                   .text();
  op.shape = dims({o.rows, o.width});
  op.inputs = {{o.rows, o.one_matrix ? 2 * o.width : o.width}};
  if (!o.one_matrix) op.inputs.push_back(op.inputs[0]);
  op.run = [o](Ctx& ctx, Vars inputs, Weights) {
    if (!o.one_matrix) return output(gated(ctx, inputs[0], inputs[1], o.activation));
    const auto [gate, up] = split<2>(ctx, own(ctx, inputs[0]), {o.width, o.width});
    return output(gated(ctx, gate, up, o.activation));
  };
  op.reference = [o](const ReferenceOperands& in) -> std::vector<Matrix> {
    if (!o.one_matrix) return {reference::gated(in.inputs[0], in.inputs[1], o.activation)};
    return {reference::gated(reference::columns(in.inputs[0], 0, o.width),
                             reference::columns(in.inputs[0], o.width, o.width), o.activation)};
  };
  if (o.activation == Activation::relu) op.difference = kReluDifference;
  const double bytes = kFloatBytes * static_cast<double>(o.rows * o.width);
  op.forward.bytes = 3 * bytes;
  op.backward.bytes = 5 * bytes;
  set_row_parts(op, o.rows, [o](RowRange range) {
    GatedCase part = o;
    part.rows = count(range);
    return gated_case(part);
  });
  return op;
}

// ---- views -----------------------------------------------------------------------------------

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
    const Var x =
        o.after_tanh ? linear(ctx, inputs[0], {weights[0]}, Activation::tanh) : own(ctx, inputs[0]);
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
        o.after_tanh
            ? reference::scale(reference::activate(reference::linear(in.inputs[0], in.weights[0],
                                                                     nullptr, LinearLayout::out_in),
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

// ---- rope ------------------------------------------------------------------------------------

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

// ---- attention -------------------------------------------------------------------------------

namespace {

// A case, and everything that its options borrow.
struct AttentionData {
  explicit AttentionData(const AttentionCase& c)
      : spec(c),
        query_offsets(offsets_of(c.queries)),
        key_offsets(offsets_of(c.keys.empty() ? c.queries : c.keys)) {
    if (c.alibi) slopes = alibi_slopes(c.heads);
  }

  // `t5` is used when the case has such a bias.
  AttentionOptions options(const T5Bias* t5) {
    AttentionOptions o = spec.options;
    o.heads = spec.heads, o.kv_heads = spec.kv_heads, o.head_dim = spec.head_dim;
    o.global_tokens = spec.global_tokens;
    o.first_positions = spec.first_positions;
    o.alibi_slopes = slopes;
    o.t5_bias = spec.t5 ? t5 : nullptr;
    o.probabilities = spec.probabilities ? &probabilities : nullptr;
    return o;
  }

  int64_t query_width() const { return int64_t{spec.heads} * spec.head_dim; }
  int64_t key_width() const { return int64_t{spec.kv_heads} * spec.head_dim; }

  AttentionCase spec;
  std::vector<int32_t> query_offsets, key_offsets;
  std::vector<float> slopes;
  Mat probabilities;  // where the last run put them
};

// A part of a case: `queries` of its sequence s against that sequence's first `keys` keys.
OpPart attention_part(const AttentionCase& whole, size_t s, RowRange queries, int32_t keys) {
  const AttentionData data(whole);
  const int32_t first_query = data.query_offsets[s], first_key = data.key_offsets[s];
  AttentionCase part = whole;
  part.queries = {static_cast<int32_t>(count(queries))};
  part.keys = {keys};
  const int32_t cached = whole.first_positions.empty() ? 0 : whole.first_positions[s];
  part.first_positions = {cached + static_cast<int32_t>(queries.begin)};
  if (!whole.global_tokens.empty()) {
    part.global_tokens.assign(whole.global_tokens.begin() + first_query,
                              whole.global_tokens.begin() + data.query_offsets[s + 1]);
  }
  part.one_matrix = false;
  const RowRange q{first_query + queries.begin, first_query + queries.end};
  const RowRange k{first_key, first_key + keys};
  return {attention_case(part), {q, k, k}, q};
}

// Each sequence alone; and, where later keys are hidden, its last queries step by step.
std::vector<OpPart> attention_parts(const AttentionCase& c) {
  const AttentionData data(c);
  std::vector<OpPart> parts;
  for (size_t s = 0; s < c.queries.size(); ++s) {
    const int32_t queries = c.queries[s], keys = data.key_offsets[s + 1] - data.key_offsets[s];
    if (queries == 0) continue;
    parts.push_back(attention_part(c, s, {0, queries}, keys));
    if (!c.options.causal || !c.global_tokens.empty()) continue;
    const int32_t cached = c.first_positions.empty() ? 0 : c.first_positions[s];
    for (const int32_t step : {queries / 3, queries / 2, queries - 1}) {
      parts.push_back(attention_part(c, s, {step, step + 1}, std::min(keys, cached + step + 1)));
    }
  }
  return parts;
}

}  // namespace

OpCase attention_case(const AttentionCase& c) {
  const auto data = std::make_shared<AttentionData>(c);
  const int64_t q_width = data->query_width(), k_width = data->key_width();
  const int64_t query_rows = data->query_offsets.back(), key_rows = data->key_offsets.back();
  OpCase op;
  op.op = "attention";
  op.variant = c.variant.empty() ? "full" : c.variant;
  op.shape = std::to_string(c.queries.size()) + "x" + std::to_string(c.heads) + "x" +
             std::to_string(c.head_dim) + "x" +
             std::to_string(*std::max_element(c.queries.begin(), c.queries.end()));
  if (c.one_matrix) {
    op.inputs = {{query_rows, q_width + 2 * k_width}};
  } else {
    op.inputs = {{query_rows, q_width}, {key_rows, k_width}, {key_rows, k_width}};
  }
  if (c.t5) op.weights = {{c.t5_rule.buckets, c.heads}};
  op.run = [=](Ctx& ctx, Vars inputs, Weights weights) {
    std::array<Var, 3> qkv;
    if (c.one_matrix) {
      qkv = split<3>(ctx, own(ctx, inputs[0]), {q_width, k_width, k_width});
    } else {
      qkv = {inputs[0], inputs[1], inputs[2]};
    }
    const T5Bias t5{c.t5 ? weights[0] : Weight{}, c.t5_rule};
    const Var y = attention(ctx, {qkv[0], qkv[1], qkv[2], data->query_offsets, data->key_offsets},
                            data->options(&t5));
    OpResult result = output(y);
    if (c.probabilities) result.extras.push_back(data->probabilities);
    return result;
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    const std::vector<Matrix> qkv =
        c.one_matrix
            ? std::vector<Matrix>{reference::columns(in.inputs[0], 0, q_width),
                                  reference::columns(in.inputs[0], q_width, k_width),
                                  reference::columns(in.inputs[0], q_width + k_width, k_width)}
            : in.inputs;
    const T5Bias t5{{}, c.t5_rule};
    reference::AttentionResult result =
        reference::attention({.q = &qkv[0],
                              .k = &qkv[1],
                              .v = &qkv[2],
                              .query_offsets = data->query_offsets,
                              .key_offsets = data->key_offsets,
                              .t5_table = optional_matrix(in.weights, 0),
                              .dropout = in.dropout},
                             data->options(&t5));
    std::vector<Matrix> results = {std::move(result.out)};
    if (c.probabilities) results.push_back(std::move(result.probabilities));
    return results;
  };
  op.draws = c.options.dropout > 0;
  // Softmax divides the rounding errors of the scores among few keys.
  op.tolerance = 4e-6;
  op.gradient_tolerance = 2e-5;
  op.smallest_gradient = 0.05;
  double pairs = 0;
  for (size_t s = 0; s < c.queries.size(); ++s) {
    pairs += static_cast<double>(c.queries[s]) * (data->key_offsets[s + 1] - data->key_offsets[s]) *
             (c.options.causal ? 0.5 : 1.0);
  }
  op.forward.flops = 4 * pairs * static_cast<double>(q_width);
  op.backward.flops = 2.5 * op.forward.flops;
  op.forward.bytes =
      kFloatBytes * 2 * static_cast<double>(query_rows * q_width + key_rows * k_width);
  op.backward.bytes = 2 * op.forward.bytes;
  op.limit = Limit::gemm;
  op.parts = [c] { return attention_parts(c); };
  if (c.one_matrix)
    op.parts = nullptr;  // the same kernels as without; its parts would be cut twice
  return op;
}

// ---- pool ------------------------------------------------------------------------------------

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

// ---- losses ----------------------------------------------------------------------------------

namespace {

std::vector<int32_t> drawn_labels(RowRange rows, int64_t classes, bool ignore_some) {
  std::vector<int32_t> labels = drawn_list(kLabels, rows, classes);
  for (int64_t row = rows.begin; ignore_some && row < rows.end; ++row) {
    if (row % 3 == 1) labels[static_cast<size_t>(row - rows.begin)] = kIgnoreLabel;
  }
  return labels;
}

// Each row alone: the sum of their losses is the loss of them all. make(row) builds the case of one
// row. Not for huge weights, which each part draws again.
void set_loss_parts(OpCase& op, const std::function<OpCase(int64_t row)>& make) {
  constexpr int64_t kMaxDrawn = 4 << 20;
  const int64_t rows = op.inputs[0].rows;
  if (rows == 0 || rows * op.weights[0].rows * op.weights[0].cols > kMaxDrawn) return;
  op.parts = [=] {
    std::vector<OpPart> parts;
    for (int64_t row = 0; row < rows; ++row) parts.push_back({make(row), {{row, row + 1}}, {}});
    return parts;
  };
}

std::string loss_variant(const CrossEntropyOptions& o, bool ignore_some, Words words = {}) {
  return words.add(o.label_smoothing > 0, "label_smoothing " + number(o.label_smoothing))
      .add(o.soft_cap > 0, "soft_cap " + number(o.soft_cap))
      .add(ignore_some, "ignored rows")
      .text();
}

}  // namespace

OpCase vocabulary_cross_entropy_case(const VocabularyCase& o) {
  const auto labels = std::make_shared<const std::vector<int32_t>>(
      drawn_labels({o.first_row, o.first_row + o.rows}, o.vocabulary, o.ignore_some));
  OpCase op;
  op.op = "vocabulary_cross_entropy";
  op.variant =
      loss_variant(o.options, o.ignore_some,
                   Words().add(o.bias, "bias").add(o.layout == LinearLayout::in_out, "in_out"));
  op.shape = dims({o.rows, o.width, o.vocabulary});
  op.inputs = {{o.rows, o.width}};
  const bool out_in = o.layout == LinearLayout::out_in;
  op.weights = {{out_in ? o.vocabulary : o.width, out_in ? o.width : o.vocabulary,
                 2 * fan_in_deviation(o.width)}};
  if (o.bias) op.weights.push_back({1, o.vocabulary});
  op.is_loss = true;
  op.gradient_scale = o.options.gradient_scale;
  op.run = [=](Ctx& ctx, Vars inputs, Weights weights) {
    const Linear layer{weights[0], o.bias ? weights[1] : Weight{}, o.layout};
    return loss_output(vocabulary_cross_entropy(ctx, inputs[0], layer, *labels, o.options));
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    const Matrix logits =
        reference::linear(in.inputs[0], in.weights[0], optional_matrix(in.weights, 1), o.layout);
    return {Matrix(reference::cross_entropy(logits, *labels, o.options))};
  };
  const double product =
      2 * static_cast<double>(o.rows) * static_cast<double>(o.width * o.vocabulary);
  op.forward = {product, kFloatBytes * static_cast<double>((o.rows + o.vocabulary) * o.width)};
  op.backward = {2 * product, 2 * op.forward.bytes};
  op.limit = Limit::gemm;
  set_loss_parts(op, [o](int64_t row) {
    VocabularyCase part = o;
    part.first_row = row, part.rows = 1;
    return vocabulary_cross_entropy_case(part);
  });
  return op;
}

OpCase vocabulary_kl_divergence_case(const DistillationCase& o) {
  struct Data {
    Constants x, weight;
  };
  const std::shared_ptr<const Data> data(new Data{
      Constants(o.first_row + o.rows, o.teacher_width, kTargets),
      Constants(o.vocabulary, o.teacher_width, kLabels, 2 * fan_in_deviation(o.teacher_width))});
  const ConstMat teacher_x(data->x.view.row(o.first_row), o.rows, o.teacher_width);
  OpCase op;
  op.op = "vocabulary_kl_divergence";
  op.variant = Words()
                   .add(o.options.temperature != 1, "temperature " + number(o.options.temperature))
                   .add(o.bias, "bias")
                   .text();
  op.shape = dims({o.rows, o.width, o.vocabulary});
  op.inputs = {{o.rows, o.width}};
  op.weights = {{o.vocabulary, o.width, 2 * fan_in_deviation(o.width)}};
  if (o.bias) op.weights.push_back({1, o.vocabulary});
  op.is_loss = true;
  op.gradient_scale = o.options.gradient_scale;
  op.run = [=](Ctx& ctx, Vars inputs, Weights weights) {
    const Linear layer{weights[0], o.bias ? weights[1] : Weight{}};
    const Teacher teacher{teacher_x, {Weight{data->weight.view}}};
    return loss_output(vocabulary_kl_divergence(ctx, inputs[0], layer, teacher, o.options));
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    const auto logits = [](const Matrix& x, const Matrix& w, const Matrix* bias) {
      return reference::linear(x, w, bias, LinearLayout::out_in);
    };
    return {Matrix(reference::kl_divergence(
        logits(in.inputs[0], in.weights[0], optional_matrix(in.weights, 1)),
        logits(Matrix(teacher_x), Matrix(data->weight.view), nullptr), o.options.temperature))};
  };
  op.forward.flops = 2 * static_cast<double>(o.rows * o.vocabulary) *
                     static_cast<double>(o.width + o.teacher_width);
  op.limit = Limit::gemm;
  set_loss_parts(op, [o](int64_t row) {
    DistillationCase part = o;
    part.first_row = row, part.rows = 1;
    return vocabulary_kl_divergence_case(part);
  });
  return op;
}

OpCase vocabulary_twin_cross_entropy_case(const TwinCase& o) {
  std::vector<int32_t> drawn = drawn_labels({0, o.pairs}, o.vocabulary, o.ignore_some);
  drawn.insert(drawn.end(), drawn.begin(), drawn.begin() + o.pairs);
  const auto labels = std::make_shared<const std::vector<int32_t>>(std::move(drawn));
  OpCase op;
  op.op = "vocabulary_twin_cross_entropy";
  op.variant =
      loss_variant(o.options, o.ignore_some,
                   Words().add(true, "weight " + number(o.divergence_weight)).add(o.bias, "bias"));
  op.shape = dims({2 * o.pairs, o.width, o.vocabulary});
  op.inputs = {{2 * o.pairs, o.width}};
  op.weights = {{o.vocabulary, o.width, 2 * fan_in_deviation(o.width)}};
  if (o.bias) op.weights.push_back({1, o.vocabulary});
  op.is_loss = true;
  op.gradient_scale = o.options.gradient_scale;
  op.run = [=](Ctx& ctx, Vars inputs, Weights weights) {
    const Linear layer{weights[0], o.bias ? weights[1] : Weight{}};
    const TwinLoss loss = vocabulary_twin_cross_entropy(ctx, inputs[0], layer, *labels,
                                                        o.divergence_weight, o.options);
    return loss_output(
        {loss.labels.sum + double{o.divergence_weight} * loss.divergence.sum, loss.labels.count});
  };
  op.reference = [=](const ReferenceOperands& in) -> std::vector<Matrix> {
    const Matrix logits = reference::linear(in.inputs[0], in.weights[0],
                                            optional_matrix(in.weights, 1), LinearLayout::out_in);
    return {Matrix(reference::cross_entropy(logits, *labels, o.options) +
                   o.divergence_weight * reference::twin_divergence(logits, *labels))};
  };
  op.forward.flops = 4 * static_cast<double>(o.pairs) * static_cast<double>(o.width * o.vocabulary);
  op.limit = Limit::gemm;
  return op;
}

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
  op.forward.bytes = op.backward.bytes = kFloatBytes * static_cast<double>(o.rows * o.classes);
  return op;
}

namespace {

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

}  // namespace

OpCase squared_error_case(int64_t rows, int64_t width, float gradient_scale) {
  return comparison_case({"squared_error", squared_error, reference::squared_error}, rows, width,
                         gradient_scale);
}

OpCase cosine_distance_case(int64_t rows, int64_t width, float gradient_scale) {
  return comparison_case({"cosine_distance", cosine_distance, reference::cosine_distance}, rows,
                         width, gradient_scale);
}

}  // namespace heed::op_cases
