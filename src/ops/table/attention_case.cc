// attention.cc: every mask, bias and head layout.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "ops/table/case_tools.h"

namespace heed::reference {

namespace {

// Each row of probabilities, numbered by (query row, head), has 2^20 groups of 128 keys.
double attention_factor(const RandomKey& key, float p, uint64_t probability_row, uint64_t at) {
  return dropout_factor(key, p, (probability_row << 27) + at);
}

// Raffel et al. 2020, as Hugging Face computes it: the logarithm in float.
int relative_bucket(int64_t key_minus_query, const T5Buckets& rule) {
  const bool ahead = key_minus_query > 0;
  if (!rule.bidirectional && ahead) return 0;
  const int64_t distance = std::abs(key_minus_query);
  const int per_direction = rule.bidirectional ? rule.buckets / 2 : rule.buckets;
  const int base = rule.bidirectional && ahead ? per_direction : 0;
  const int exact = per_direction / 2;
  if (distance < exact) return base + static_cast<int>(distance);
  const float numerator = std::log(static_cast<float>(distance) / static_cast<float>(exact));
  const auto denominator =
      static_cast<float>(std::log(static_cast<double>(rule.max_distance) / exact));
  const auto beyond =
      static_cast<int>(numerator / denominator * static_cast<float>(per_direction - exact));
  return base + std::min(exact + beyond, per_direction - 1);
}

// Whether the query at position i may look at key j, both counted within their sequence.
struct Visibility {
  const AttentionOptions& options;
  int64_t first_query_row, first_key_row;

  bool operator()(int64_t query, int64_t i, int64_t j) const {
    if (options.causal && j > i) return false;
    if (options.window == 0) return true;
    if (is_global(first_query_row + query) || is_global(first_key_row + j)) return true;
    if (options.symmetric) return std::abs(i - j) <= options.window;
    return j > i - options.window;
  }
  bool is_global(int64_t row) const {
    return !options.global_tokens.empty() && options.global_tokens[static_cast<size_t>(row)] != 0;
  }
};

// Press et al. 2022, appendix: for n heads, a power of two, 2^(-8 i / n) for i = 1 … n; otherwise
// the slopes of the power below, then every second one of the power above.
double alibi_slope(int head, int heads) {
  int power = 1;
  while (2 * power <= heads) power *= 2;
  return head < power ? std::pow(2, -8.0 * (head + 1) / power)
                      : std::pow(2, -8.0 * (2 * (head - power) + 1) / (2 * power));
}

double score_bias(const AttentionInputs& in, const AttentionOptions& o, int head,
                  int64_t key_minus_query) {
  const auto distance = static_cast<double>(std::abs(key_minus_query));
  switch (o.bias.kind) {
    case RelativeBiasKind::none:
      return 0;
    case RelativeBiasKind::t5:
      return in.bias_weights->at(relative_bucket(key_minus_query, o.bias.t5_rule), head);
    case RelativeBiasKind::alibi:
      return -alibi_slope(head, o.heads) * distance;
    case RelativeBiasKind::kerple:
      return -std::exp(in.bias_weights->at(0, head)) *
             std::log(1 + std::exp(in.bias_weights->at(1, head)) * distance);
  }
  return 0;
}

}  // namespace

AttentionResult attention(const AttentionInputs& in, const AttentionOptions& o) {
  const double scale = o.scale != 0 ? double{o.scale} : 1 / std::sqrt(double(o.head_dim));
  const int group = o.heads / o.kv_heads;
  AttentionResult result{Matrix(in.q->rows, in.q->cols), Matrix()};
  std::vector<double>& all = result.probabilities.values;
  std::vector<double> p;
  for (size_t s = 0; s + 1 < in.query_offsets.size(); ++s) {
    const int64_t first_query = in.query_offsets[s], first_key = in.key_offsets[s];
    const int64_t queries = in.query_offsets[s + 1] - first_query;
    const int64_t keys = in.key_offsets[s + 1] - first_key;
    const Visibility sees{o, first_query, first_key};
    for (int head = 0; head < o.heads; ++head) {
      const int64_t column = int64_t{head} * o.head_dim;
      const int64_t kv_column = int64_t{head / group} * o.head_dim;
      for (int64_t query = 0; query < queries; ++query) {
        const int64_t row = first_query + query, position = query;
        p.assign(static_cast<size_t>(keys), -std::numeric_limits<double>::infinity());
        double max = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          if (!sees(query, position, j)) continue;
          double score = 0;
          for (int d = 0; d < o.head_dim; ++d) {
            score += in.q->at(row, column + d) * in.k->at(first_key + j, kv_column + d);
          }
          score *= scale;
          if (o.soft_cap > 0) score = o.soft_cap * std::tanh(score / o.soft_cap);
          score += score_bias(in, o, head, j - position);
          p[static_cast<size_t>(j)] = score;
          max = std::max(max, score);
        }
        for (double& value : p) {
          value = std::isinf(value) ? 0 : std::exp(value - max);
          sum += value;
        }
        for (int64_t j = 0; j < keys; ++j) {
          double& probability = p[static_cast<size_t>(j)];
          if (probability == 0) continue;
          probability /= sum;
          const uint64_t stream = static_cast<uint64_t>(row * o.heads + head);
          const double kept =
              in.dropout && o.dropout > 0
                  ? attention_factor(*in.dropout, o.dropout, stream, static_cast<uint64_t>(j))
                  : 1;
          for (int d = 0; d < o.head_dim; ++d) {
            result.out.at(row, column + d) +=
                kept * probability * in.v->at(first_key + j, kv_column + d);
          }
        }
        if (o.probabilities) all.insert(all.end(), p.begin(), p.end());
      }
    }
  }
  result.probabilities.rows = 1;
  result.probabilities.cols = static_cast<int64_t>(all.size());
  return result;
}

}  // namespace heed::reference

namespace heed::op_cases {
namespace {

struct AttentionCase {
  std::string variant{};
  std::vector<int32_t> queries{};  // length of each sequence
  std::vector<int32_t> keys{};     // likewise; empty: the same (self-attention)
  int heads = 2, kv_heads = 2, head_dim = 8;
  AttentionOptions options{};  // the fields below replace the same ones here
  RelativeBias bias{};         // without weights
  std::vector<uint8_t> global_tokens{};
  bool probabilities = false;
  bool one_matrix = false;  // q, k and v are slices of one matrix
};

OpCase attention_case(const AttentionCase& c);

// A case, and everything that its options borrow.
struct AttentionData {
  explicit AttentionData(const AttentionCase& c)
      : spec(c),
        query_offsets(offsets_of(c.queries)),
        key_offsets(offsets_of(c.keys.empty() ? c.queries : c.keys)) {}

  AttentionOptions options(const Weight& bias_weights) {
    AttentionOptions o = spec.options;
    o.heads = spec.heads, o.kv_heads = spec.kv_heads, o.head_dim = spec.head_dim;
    o.global_tokens = spec.global_tokens;
    o.bias = spec.bias, o.bias.weights = bias_weights;
    o.probabilities = spec.probabilities ? &probabilities : nullptr;
    return o;
  }

  int64_t query_width() const { return int64_t{spec.heads} * spec.head_dim; }
  int64_t key_width() const { return int64_t{spec.kv_heads} * spec.head_dim; }

  AttentionCase spec;
  std::vector<int32_t> query_offsets, key_offsets;
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
  if (c.bias.weight_rows() > 0) op.weights = {{c.bias.weight_rows(), c.heads}};
  op.run = [=](Ctx& ctx, Vars inputs, Weights weights) {
    std::array<Var, 3> qkv;
    if (c.one_matrix) {
      qkv = split<3>(ctx, copy_of_input(ctx, inputs[0]), {q_width, k_width, k_width});
    } else {
      qkv = {inputs[0], inputs[1], inputs[2]};
    }
    const Var y = attention(ctx, {qkv[0], qkv[1], qkv[2], data->query_offsets, data->key_offsets},
                            data->options(weights.empty() ? Weight{} : weights[0]));
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
    reference::AttentionResult result =
        reference::attention({.q = &qkv[0],
                              .k = &qkv[1],
                              .v = &qkv[2],
                              .query_offsets = data->query_offsets,
                              .key_offsets = data->key_offsets,
                              .bias_weights = optional_matrix(in.weights, 0),
                              .dropout = in.dropout},
                             data->options({}));
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
  op.flops = 4 * pairs * static_cast<double>(q_width);
  op.parts = [c] { return attention_parts(c); };
  // With one matrix the kernels are the same, and a part of its columns has no case.
  if (c.one_matrix) op.parts = nullptr;
  return op;
}

std::vector<uint8_t> every_nth(int64_t rows, int64_t n) {
  std::vector<uint8_t> flags(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; r += n) flags[static_cast<size_t>(r)] = 1;
  return flags;
}

// What attention's tiles (48 queries, 128 keys) and vectors make special.
void add_attention_shapes(std::vector<OpCase>& table) {
  for (const int32_t length : {1, 3, 48, 49, 127, 128, 129, 300}) {
    for (const bool causal : {false, true}) {
      table.push_back(attention_case({.variant = causal ? "causal" : "full",
                                      .queries = {length},
                                      .options = {.causal = causal}}));
    }
  }
  for (const int head_dim : {8, 17, 32, 64, 80}) {
    table.push_back(attention_case({.variant = "causal head_dim",
                                    .queries = {5, 21},
                                    .heads = 3,
                                    .kv_heads = 3,
                                    .head_dim = head_dim,
                                    .options = {.causal = true}}));
  }
  const std::vector<int32_t> ragged = {7, 1, 50, 130, 16};
  table.push_back(attention_case({.variant = "ragged", .queries = ragged}));
  table.push_back(
      attention_case({.variant = "ragged causal", .queries = ragged, .options = {.causal = true}}));
  table.push_back(attention_case({.variant = "ragged causal one_matrix",
                                  .queries = ragged,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .options = {.causal = true},
                                  .one_matrix = true}));
  table.push_back(attention_case({.variant = "an empty sequence", .queries = {4, 0, 6}}));
  table.push_back(
      attention_case({.variant = "cross", .queries = {7, 1, 60, 3}, .keys = {1, 140, 9, 33}}));
  table.push_back(
      attention_case({.variant = "cross without keys", .queries = {3, 2, 4}, .keys = {5, 0, 2}}));
  for (const int kv_heads : {1, 2}) {
    table.push_back(attention_case({.variant = kv_heads == 1 ? "mqa causal" : "gqa causal",
                                    .queries = {3, 70},
                                    .heads = 6,
                                    .kv_heads = kv_heads,
                                    .options = {.causal = true}}));
  }
}

void add_attention_masks(std::vector<OpCase>& table) {
  const std::vector<int32_t> lengths = {200, 9, 140};
  for (const int64_t window : {1, 4, 50, 131}) {
    const std::string text = std::to_string(window);
    table.push_back(attention_case(
        {.variant = "window " + text, .queries = lengths, .options = {.window = window}}));
    table.push_back(attention_case({.variant = "causal window " + text,
                                    .queries = lengths,
                                    .options = {.causal = true, .window = window}}));
    table.push_back(attention_case({.variant = "symmetric window " + text,
                                    .queries = lengths,
                                    .options = {.window = window, .symmetric = true}}));
  }
  // Global tokens at the start of each sequence and, with another stride, everywhere.
  for (const int64_t stride : {17, 190}) {
    const std::string text = "global 1/" + std::to_string(stride);
    table.push_back(attention_case({.variant = "symmetric window " + text,
                                    .queries = lengths,
                                    .options = {.window = 3, .symmetric = true},
                                    .global_tokens = every_nth(349, stride)}));
    table.push_back(attention_case({.variant = "causal window " + text,
                                    .queries = lengths,
                                    .options = {.causal = true, .window = 3},
                                    .global_tokens = every_nth(349, stride)}));
  }
  table.push_back(attention_case({.variant = "window that sees nothing",
                                  .queries = {20},
                                  .keys = {5},
                                  .options = {.window = 2, .symmetric = true}}));
}

void add_attention_scores(std::vector<OpCase>& table) {
  const std::vector<int32_t> lengths = {140, 3, 33};
  for (const bool bidirectional : {true, false}) {
    table.push_back(attention_case(
        {.variant = bidirectional ? "t5 bidirectional" : "t5 causal",
         .queries = lengths,
         .heads = 3,
         .kv_heads = 3,
         .options = {.scale = 1, .causal = !bidirectional},
         .bias = {.kind = RelativeBiasKind::t5, .t5_rule = {.bidirectional = bidirectional}}}));
  }
  table.push_back(attention_case(
      {.variant = "t5 cross gqa",
       .queries = {9, 50},
       .keys = {30, 7},
       .heads = 4,
       .kv_heads = 2,
       .bias = {.kind = RelativeBiasKind::t5, .t5_rule = {.buckets = 8, .max_distance = 20}}}));
  table.push_back(
      attention_case({.variant = "t5 window dropout soft_cap",
                      .queries = lengths,
                      .options = {.soft_cap = 2, .window = 9, .symmetric = true, .dropout = 0.2f},
                      .bias = {.kind = RelativeBiasKind::t5}}));
  for (const bool causal : {false, true}) {
    table.push_back(attention_case({.variant = causal ? "alibi causal" : "alibi",
                                    .queries = lengths,
                                    .heads = 3,
                                    .kv_heads = 3,
                                    .options = {.causal = causal},
                                    .bias = {.kind = RelativeBiasKind::alibi}}));
  }
  for (const bool causal : {false, true}) {
    table.push_back(attention_case({.variant = causal ? "kerple causal" : "kerple",
                                    .queries = lengths,
                                    .heads = 3,
                                    .kv_heads = 3,
                                    .options = {.causal = causal},
                                    .bias = {.kind = RelativeBiasKind::kerple}}));
  }
  table.push_back(attention_case({.variant = "kerple cross gqa",
                                  .queries = {9, 50},
                                  .keys = {30, 7},
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .bias = {.kind = RelativeBiasKind::kerple}}));
  table.push_back(
      attention_case({.variant = "scale", .queries = lengths, .options = {.scale = 0.11f}}));
  table.push_back(
      attention_case({.variant = "soft_cap", .queries = lengths, .options = {.soft_cap = 1.5f}}));
  table.push_back(
      attention_case({.variant = "dropout", .queries = lengths, .options = {.dropout = 0.3f}}));
  table.push_back(attention_case({.variant = "dropout causal gqa",
                                  .queries = lengths,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .options = {.causal = true, .dropout = 0.1f}}));
  table.push_back(attention_case({.variant = "probabilities",
                                  .queries = {140, 5},
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .probabilities = true}));
  table.push_back(attention_case({.variant = "probabilities cross",
                                  .queries = {3, 60},
                                  .keys = {150, 2},
                                  .probabilities = true}));
  table.push_back(attention_case({.variant = "probabilities causal window alibi",
                                  .queries = {140, 5},
                                  .options = {.causal = true, .window = 30},
                                  .bias = {.kind = RelativeBiasKind::alibi},
                                  .probabilities = true}));
}

void add_attention(std::vector<OpCase>& table) {
  add_attention_shapes(table);
  add_attention_masks(table);
  add_attention_scores(table);
}

const RegisterOps kRegistered("attention", add_attention);

}  // namespace
}  // namespace heed::op_cases
