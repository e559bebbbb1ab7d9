#include "ops/table/op_cases.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "ops/table/op_case_parts.h"

namespace heed::op_cases {
namespace {

// With hundreds of thousands of sums before it, ReLU's kink is within reach of the usual step.
constexpr double kReluDifference = 1e-7;

std::vector<int32_t> offsets_of(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> offsets = {0};
  for (const int32_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

OpResult output(const Var& y) { return {{y}, {}, {}}; }

// A copy to work in place on: the operands of a case are run on more than once.
Var own(Ctx& ctx, const Var& x) { return scale(ctx, x, 1); }

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
    const auto slices = split<3>(ctx, own(ctx, inputs[0]), {o.in, o.in, o.in});
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
  data->frequencies = rope_frequencies({.rotary_dim = o.rotary_dim, .base = kBase});
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

// Sequence s of a case alone.
OpPart attention_part(const AttentionCase& whole, size_t s) {
  const AttentionData data(whole);
  const int32_t first_query = data.query_offsets[s], first_key = data.key_offsets[s];
  const int32_t keys = data.key_offsets[s + 1] - first_key;
  AttentionCase part = whole;
  part.queries = {whole.queries[s]};
  part.keys = {keys};
  if (!whole.global_tokens.empty()) {
    part.global_tokens.assign(whole.global_tokens.begin() + first_query,
                              whole.global_tokens.begin() + data.query_offsets[s + 1]);
  }
  part.one_matrix = false;
  const RowRange q{first_query, first_query + whole.queries[s]};
  const RowRange k{first_key, first_key + keys};
  return {attention_case(part), {q, k, k}, q};
}

std::vector<OpPart> attention_parts(const AttentionCase& c) {
  std::vector<OpPart> parts;
  for (size_t s = 0; s < c.queries.size(); ++s) {
    if (c.queries[s] > 0) parts.push_back(attention_part(c, s));
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

}  // namespace heed::op_cases
