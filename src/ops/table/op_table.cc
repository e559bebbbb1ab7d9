#include "ops/table/op_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/table/op_cases.h"

namespace heed {
namespace {

// Drawing the numbers of a large operand one by one would take seconds: they repeat after this
// many, which is prime so that no row length divides it.
constexpr int64_t kDistinctNumbers = 65521;

constexpr uint32_t kWeightStream = 100, kSeedStream = 200;

// Copies an input's gradient out before the tape forgets it. Recorded first, so it runs last. What
// nobody has written is zero; what was half written shows as NaN.
struct KeepGradient {
  Gradient* gradient;
  Mat to;

  void backward(Ctx& ctx) {
    if (ctx.measuring()) return;
    if (!gradient->written) {
      std::fill_n(to.data, to.size(), 0.0f);
      return;
    }
    const Mat from = ctx.tape->arrived(ctx, *gradient);
    for (int64_t r = 0; r < to.rows; ++r) std::copy_n(from.row(r), to.cols, to.row(r));
  }
};

size_t padded_bytes(const Operand& operand) {
  const size_t bytes = static_cast<size_t>(operand.rows * operand.cols) * sizeof(float);
  return (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

size_t operand_bytes(const OpCase& op, bool keep_input_gradients) {
  size_t bytes = 0;
  for (const Operand& input : op.inputs) {
    bytes += (keep_input_gradients ? 2 : 1) * padded_bytes(input);
  }
  for (const Operand& weight : op.weights) bytes += 2 * padded_bytes(weight);
  return bytes;
}

// A matrix of NaN: shows what nobody has written.
Mat missing(Arena& memory, int64_t rows, int64_t cols) {
  float* data = memory.allocate<float>(static_cast<size_t>(rows * cols));
  std::fill_n(data, rows * cols, std::numeric_limits<float>::quiet_NaN());
  return {data, rows, cols};
}

}  // namespace

OpRun::OpRun(const OpCase& op, bool keep_input_gradients, uint64_t random_seed)
    : op_(op), random_seed_(random_seed), memory_(operand_bytes(op, keep_input_gradients)) {
  uint32_t stream = 0;
  for (const Operand& input : op.inputs) {
    inputs_.push_back(fill(memory_, input, stream++));
    if (keep_input_gradients) input_gradients_.push_back(missing(memory_, input.rows, input.cols));
  }
  stream = kWeightStream;
  for (const Operand& weight : op.weights) {
    weights_.push_back(fill(memory_, weight, stream++));
    weight_gradients_.push_back({missing(memory_, weight.rows, weight.cols)});
  }
}

Mat OpRun::fill(Arena& memory, const Operand& operand, uint32_t stream) const {
  const int64_t size = operand.rows * operand.cols;
  float* data = memory.allocate<float>(static_cast<size_t>(size));
  Random random({random_seed_, kTableStep, stream});
  const int64_t distinct = std::min(size, kDistinctNumbers);
  for (int64_t i = 0; i < distinct; ++i) {
    data[i] = operand.mean + operand.deviation * random.normal();
  }
  for (int64_t i = distinct; i < size; ++i) data[i] = data[i - distinct];
  return {data, operand.rows, operand.cols};
}

std::vector<OpResult> OpRun::forward(Ctx& ctx, int times) {
  std::vector<Var> vars;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    // Kept: an op that works in place must leave our operands as they are.
    Var var{inputs_[i], nullptr, true};
    if (ctx.tape) {
      var.gradient = ctx.tape->gradient(var.rows(), var.cols());
      if (!input_gradients_.empty()) {
        ctx.tape->record(nullptr, KeepGradient{var.gradient, input_gradients_[i]});
      }
    }
    vars.push_back(var);
  }
  std::vector<Weight> weights;
  for (size_t i = 0; i < weights_.size(); ++i) {
    weight_gradients_[i].written = false;
    weights.push_back({weights_[i], ctx.tape ? &weight_gradients_[i] : nullptr});
  }
  std::vector<OpResult> results;
  for (int i = 0; i < times; ++i) results.push_back(op_.run(ctx, vars, weights));
  return results;
}

ConstMat OpRun::seed_matrix(size_t i, int64_t rows, int64_t cols) {
  // Outputs come in an order that is always the same, and so do their shapes.
  while (seeds_.size() <= i) seeds_.push_back({});
  Mat& seed = seeds_[i];
  if (!seed.data && rows * cols > 0) {
    const Operand operand{rows, cols};
    seed_memory_.emplace_back(padded_bytes(operand));
    seed = fill(seed_memory_.back(), operand, kSeedStream + static_cast<uint32_t>(i));
  }
  return seed;
}

void OpRun::seed(Ctx& ctx, const OpResult& result) {
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const Var& y = result.outputs[i];
    const GradientTarget target = ctx.tape->target(ctx, *y.gradient);
    if (ctx.measuring()) continue;
    const ConstMat from = seed_matrix(i, y.rows(), y.cols());
    for (int64_t r = 0; r < y.rows(); ++r) std::copy_n(from.row(r), y.cols(), target.value.row(r));
  }
}

// ---- the table -------------------------------------------------------------------------------

namespace {

using namespace op_cases;  // NOLINT(google-build-using-namespace): its many makers of cases

using Table = std::vector<OpCase>;

// Enough elements for three threads to share; odd on purpose.
constexpr int64_t kManyRows = 301, kManyCols = 172;

constexpr Activation kAllActivations[] = {Activation::none, Activation::relu,
                                          Activation::gelu, Activation::gelu_tanh,
                                          Activation::silu, Activation::tanh};

void add_embed(Table& table) {
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

void add_linear(Table& table) {
  for (const Activation activation : kAllActivations) {
    table.push_back(
        linear_case({.rows = 7, .in = 13, .out = 19, .bias = true, .activation = activation}));
    table.push_back(linear_case({.rows = 5, .in = 16, .out = 9, .activation = activation}));
    table.push_back(linear_case(
        {.rows = 9, .in = 10, .out = 31, .bias = true, .activation = activation, .dropout = 0.3f}));
  }
  table.push_back(linear_case({.rows = 1, .in = 24, .out = 33, .bias = true}));
  table.push_back(linear_case({.rows = 1, .in = 1, .out = 1}));
  table.push_back(linear_case({.rows = 0, .in = 4, .out = 3, .bias = true}));
  table.push_back(linear_case({.rows = 6, .in = 11, .out = 14, .bias = true, .slice = true}));
  table.push_back(linear_case({.rows = 6,
                               .in = 11,
                               .out = 14,
                               .bias = true,
                               .activation = Activation::gelu,
                               .slice = true}));
  // Large enough to be shared among threads: by rows, and by columns.
  table.push_back(linear_case(
      {.rows = 517, .in = 65, .out = 130, .bias = true, .activation = Activation::relu}));
  table.push_back(linear_case(
      {.rows = 20, .in = 130, .out = 1031, .bias = true, .activation = Activation::gelu_tanh}));
}

void add_norm(Table& table) {
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

void add_elementwise(Table& table) {
  for (const ElementwiseCase& shape :
       {ElementwiseCase{.rows = 1, .width = 5}, ElementwiseCase{.rows = 9, .width = 43},
        ElementwiseCase{.rows = kManyRows, .width = kManyCols}}) {
    ElementwiseCase options = shape;
    table.push_back(residual_add_case(options));
    for (const float p : {0.1f, 0.5f}) {
      options.dropout = p;
      table.push_back(residual_add_case(options));
      table.push_back(dropout_case(options));
    }
    options.factor = 0.37f;
    table.push_back(scale_case(options));
    for (const bool one_matrix : {false, true}) {
      table.push_back(
          gated_case({.rows = shape.rows, .width = shape.width, .one_matrix = one_matrix}));
    }
  }
  for (const Activation activation :
       {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::tanh}) {
    for (const bool one_matrix : {false, true}) {
      table.push_back(
          gated_case({.rows = 7, .width = 21, .activation = activation, .one_matrix = one_matrix}));
    }
  }
}

void add_views(Table& table) {
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

void add_rope(Table& table) {
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

std::vector<uint8_t> every_nth(int64_t rows, int64_t n) {
  std::vector<uint8_t> flags(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; r += n) flags[static_cast<size_t>(r)] = 1;
  return flags;
}

// What attention's tiles (48 queries, 128 keys) and vectors make special.
void add_attention_shapes(Table& table) {
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

void add_attention_masks(Table& table) {
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

void add_attention_scores(Table& table) {
  const std::vector<int32_t> lengths = {140, 3, 33};
  for (const bool bidirectional : {true, false}) {
    table.push_back(attention_case({.variant = bidirectional ? "t5 bidirectional" : "t5 causal",
                                    .queries = lengths,
                                    .heads = 3,
                                    .kv_heads = 3,
                                    .options = {.scale = 1, .causal = !bidirectional},
                                    .t5 = true,
                                    .t5_rule = {.bidirectional = bidirectional}}));
  }
  table.push_back(attention_case({.variant = "t5 cross gqa",
                                  .queries = {9, 50},
                                  .keys = {30, 7},
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .t5 = true,
                                  .t5_rule = {.buckets = 8, .max_distance = 20}}));
  table.push_back(
      attention_case({.variant = "t5 window dropout soft_cap",
                      .queries = lengths,
                      .options = {.soft_cap = 2, .window = 9, .symmetric = true, .dropout = 0.2f},
                      .t5 = true}));
  for (const bool causal : {false, true}) {
    table.push_back(attention_case({.variant = causal ? "alibi causal" : "alibi",
                                    .queries = lengths,
                                    .heads = 3,
                                    .kv_heads = 3,
                                    .options = {.causal = causal},
                                    .alibi = true}));
  }
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
                                  .alibi = true,
                                  .probabilities = true}));
}

void add_pool(Table& table) {
  for (const Pooling pooling : {Pooling::first, Pooling::last, Pooling::mean}) {
    table.push_back(pool_case({1}, 5, pooling));
    table.push_back(pool_case({4, 1, 9, 2}, 37, pooling));
  }
}

void add_losses(Table& table) {
  constexpr float kScale = 0.125f;  // of the gradient
  for (const bool bias : {false, true}) {
    table.push_back(
        vocabulary_cross_entropy_case({.rows = 7, .width = 12, .vocabulary = 23, .bias = bias}));
  }
  table.push_back(vocabulary_cross_entropy_case({.rows = 1, .width = 4, .vocabulary = 2}));
  table.push_back(  // nothing was masked in this batch
      vocabulary_cross_entropy_case({.rows = 0, .width = 4, .vocabulary = 5, .bias = true}));
  table.push_back(
      vocabulary_cross_entropy_case({.rows = 9,
                                     .width = 12,
                                     .vocabulary = 37,
                                     .bias = true,
                                     .options = {.label_smoothing = 0.1f, .gradient_scale = kScale},
                                     .ignore_some = true}));
  table.push_back(vocabulary_cross_entropy_case(
      {.rows = 9,
       .width = 12,
       .vocabulary = 37,
       .options = {.label_smoothing = 0.2f, .soft_cap = 3, .gradient_scale = kScale},
       .ignore_some = true}));
  table.push_back(vocabulary_cross_entropy_case(
      {.rows = 260, .width = 24, .vocabulary = 301, .options = {.label_smoothing = 0.1f}}));
  // Logits for several tiles, of 8 Mi at most.
  table.push_back(vocabulary_cross_entropy_case({.rows = 257,
                                                 .width = 2,
                                                 .vocabulary = 70001,
                                                 .bias = true,
                                                 .options = {.label_smoothing = 0.1f},
                                                 .ignore_some = true}));
  table.push_back(vocabulary_kl_divergence_case(
      {.rows = 9, .width = 12, .teacher_width = 7, .vocabulary = 37}));
  table.push_back(
      vocabulary_kl_divergence_case({.rows = 9,
                                     .width = 12,
                                     .teacher_width = 20,
                                     .vocabulary = 37,
                                     .bias = true,
                                     .options = {.temperature = 2, .gradient_scale = kScale}}));
  table.push_back(vocabulary_twin_cross_entropy_case({.pairs = 1, .width = 4, .vocabulary = 2}));
  table.push_back(  // nothing was masked in this batch
      vocabulary_twin_cross_entropy_case({.pairs = 0, .width = 4, .vocabulary = 5, .bias = true}));
  table.push_back(vocabulary_twin_cross_entropy_case(
      {.pairs = 9,
       .width = 12,
       .vocabulary = 37,
       .bias = true,
       .divergence_weight = 5,
       .options = {.label_smoothing = 0.1f, .gradient_scale = kScale},
       .ignore_some = true}));
  // Logits for two tiles.
  table.push_back(vocabulary_twin_cross_entropy_case({.pairs = 129,
                                                      .width = 2,
                                                      .vocabulary = 70001,
                                                      .divergence_weight = 3,
                                                      .ignore_some = true}));
  table.push_back(cross_entropy_case({.rows = 1, .classes = 2}));
  table.push_back(cross_entropy_case(
      {.rows = 9,
       .classes = 37,
       .options = {.label_smoothing = 0.1f, .soft_cap = 4, .gradient_scale = kScale},
       .ignore_some = true}));
  table.push_back(cross_entropy_case({.rows = kManyRows, .classes = kManyCols}));
  table.push_back(squared_error_case(1, 1, 1));
  table.push_back(squared_error_case(9, 5, kScale));
  table.push_back(squared_error_case(kManyRows, kManyCols, 1));
  table.push_back(cosine_distance_case(9, 21, kScale));
  table.push_back(cosine_distance_case(kManyRows, kManyCols, 1));
}

}  // namespace

std::vector<OpCase> correctness_cases() {
  Table table;
  add_embed(table);
  add_linear(table);
  add_norm(table);
  add_elementwise(table);
  add_views(table);
  add_rope(table);
  add_attention_shapes(table);
  add_attention_masks(table);
  add_attention_scores(table);
  add_pool(table);
  add_losses(table);
  return table;
}

std::vector<OpCase> speed_cases(const SpeedSizes& sizes) {
  constexpr int64_t kWidth = 512;
  Table table;
  struct Place {
    Limit limit;
    int64_t floats;
  };
  for (const Place place :
       {Place{Limit::memory, sizes.memory_floats}, Place{Limit::l2, sizes.l2_floats}}) {
    // Rows such that `matrices` of them, all that forward and backward touch, fill the place.
    const auto rows = [&](int64_t matrices, int64_t width) {
      return std::max<int64_t>(place.floats / (matrices * width), 1);
    };
    const auto add = [&](OpCase op) {
      op.limit = place.limit;
      table.push_back(std::move(op));
    };
    add(norm_case({.rows = rows(4, kWidth), .width = kWidth, .beta = true}));
    add(norm_case({.kind = NormKind::rms_norm, .rows = rows(4, kWidth), .width = kWidth}));
    add(residual_add_case({.rows = rows(5, kWidth), .width = kWidth, .dropout = 0.1f}));
    add(dropout_case({.rows = rows(3, kWidth), .width = kWidth, .dropout = 0.1f}));
    add(gated_case({.rows = rows(6, kWidth), .width = kWidth}));
    add(embed_case({.rows = rows(4, kWidth),
                    .width = kWidth,
                    .vocabulary = rows(4, kWidth),
                    .scale = std::sqrt(static_cast<float>(kWidth))}));
    // As wide as a vocabulary for memory, as a set of classes for L2.
    const int64_t classes = place.limit == Limit::memory ? 32000 : 1000;
    add(cross_entropy_case(
        {.rows = rows(4, classes), .classes = classes, .options = {.label_smoothing = 0.1f}}));
  }
  for (const int32_t length : {16, 64, 256, 1024}) {
    for (const bool causal : {true, false}) {
      table.push_back(attention_case({.variant = causal ? "causal" : "full",
                                      .queries = std::vector<int32_t>(64, length),
                                      .heads = 8,
                                      .kv_heads = 8,
                                      .head_dim = 64,
                                      .options = {.causal = causal}}));
    }
  }
  table.push_back(linear_case(
      {.rows = 1008, .in = 512, .out = 2048, .bias = true, .activation = Activation::relu}));
  table.push_back(linear_case(
      {.rows = 256, .in = 768, .out = 3072, .bias = true, .activation = Activation::gelu_tanh}));
  table.push_back(vocabulary_cross_entropy_case(
      {.rows = 4080, .width = 128, .vocabulary = 10000, .options = {.label_smoothing = 0.1f}}));
  table.push_back(vocabulary_cross_entropy_case(
      {.rows = 1008, .width = 512, .vocabulary = 32000, .options = {.label_smoothing = 0.1f}}));
  return table;
}

}  // namespace heed
