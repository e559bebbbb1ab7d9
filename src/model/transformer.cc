#include "model/transformer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/checkpoint.h"

namespace heed {
namespace {

// Relative positions and masks are computed from the cache's lengths, so rows must start there.
void check_cache(const Batch& batch, const KvView& cache, const KvLayout& layout) {
  HEED_CHECK(cache.layout && cache.layout->groups.size() == layout.groups.size() &&
                 cache.sequences() == batch.sequences(),
             "decode: the cache must have a table for every group and sequence");
  for (const KvLayout::Place& place : layout.self) {
    const KvTable* tables = cache.layer(place).tables;
    for (size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
      const auto begin = static_cast<size_t>(batch.offsets[s]), rows = batch.offsets[s + 1] - begin;
      HEED_CHECK(rows == 0 || batch.positions[begin] + static_cast<int64_t>(rows) == tables[s].keys,
                 "decode: positions must follow those in the cache");
    }
  }
}

}  // namespace

GlobalTokens::GlobalTokens(const Batch& batch, std::span<const int32_t> marked_rows)
    : flags(static_cast<size_t>(batch.rows())), offsets{0} {
  for (const int32_t row : marked_rows) {
    if (row < 0 || row >= batch.rows()) {
      throw Error(ErrorCode::invalid_argument, "global token in row " + std::to_string(row) +
                                                   " of a batch of " +
                                                   std::to_string(batch.rows()));
    }
    flags[static_cast<size_t>(row)] = 1;
  }
  for (size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
    for (int32_t row = batch.offsets[s]; row < batch.offsets[s + 1]; ++row) {
      if (flags[static_cast<size_t>(row)]) rows.push_back(row);
    }
    offsets.push_back(static_cast<int32_t>(rows.size()));
  }
}

std::optional<GlobalTokens> default_global_tokens(const ModelConfig& config, const Batch& batch) {
  const bool classifies = config.head == Head::classifier || config.head == Head::regression;
  if (config.attention != AttentionSpan::longformer || !classifies || batch.offsets.empty()) {
    return std::nullopt;
  }
  return GlobalTokens(batch, batch.offsets.first(batch.offsets.size() - 1));
}

Transformer::Transformer(const ModelConfig& config, const Parameters& parameters)
    : c_(config), p_(parameters) {
  if (c_.position == Position::sinusoidal) {
    sinusoids_ =
        sinusoidal_table(c_.max_positions + c_.position_offset, c_.width, c_.sinusoid_layout);
  }
  if (c_.has_encoder()) encoder_ = make_stack(Side::encoder);
  if (c_.has_decoder()) {
    decoder_ = make_stack(Side::decoder);
    kv_layout_ = heed::kv_layout(c_);
  }
  heads_ = make_heads();
}

Linear Transformer::linear_layer(const std::string& name) const {
  return {p_.weight(name + ".weight"), p_.weight(name + ".bias")};
}

Norm Transformer::norm_layer(const std::string& name) const {
  return {.kind = c_.norm,
          .gamma = p_.weight(name + ".gamma"),
          .beta = p_.weight(name + ".beta"),
          .eps = c_.norm_eps,
          .gamma_offset = c_.norm_offset};
}

Transformer::Stack Transformer::make_stack(Side side) {
  Stack stack;
  stack.config = c_.stack(side);
  stack.attention = {.heads = stack.config.heads,
                     .kv_heads = stack.config.kv_heads,
                     .head_dim = stack.config.head_dim,
                     .scale = c_.attention_scale,
                     .soft_cap = c_.attention_soft_cap,
                     .dropout = c_.attention_dropout};
  const std::string name = stack.config.name;
  const std::string embedding = side == c_.first_side() ? "embedding" : "target";
  Embedding& e = stack.embedding;
  e.tokens = p_.weight(embedding + ".tokens");
  if (!e.tokens) e.tokens = p_.weight("embedding.tokens");  // shared with the source
  if (c_.embedding_scale == EmbeddingScale::sqrt_width) {
    e.scale = std::sqrt(static_cast<float>(c_.width));
  }
  if (c_.position == Position::learned) {
    e.positions = p_.weight(embedding + ".positions");
  } else if (c_.position == Position::sinusoidal) {
    e.positions = {ConstMat(sinusoids_.data(), c_.max_positions + c_.position_offset, c_.width)};
  }
  e.position_offset = c_.position_offset;
  if (embedding == "embedding") e.token_types = p_.weight("embedding.token_types");
  if (c_.pad_frozen) e.frozen_id = c_.pad_id;
  // Where a norm follows, dropout follows the norm.
  e.dropout = c_.embedding_norm ? 0 : c_.embedding_dropout;
  if (c_.embedding_norm) stack.embedding_norm = norm_layer(embedding + ".norm");

  stack.bias = c_.relative_bias(stack.config.causal);
  if (stack.bias.weight_rows() > 0) {
    stack.bias.weights = p_.weight(name + "." + std::string(info(stack.bias.kind).weight));
  }
  if (c_.position == Position::rope) {
    stack.rope = rope_angles(c_.rope_formula(stack.config.head_dim));
  }
  for (int i = 0; i < stack.config.layers; ++i) {
    const std::string prefix = name + "." + std::to_string(i);
    const auto norms = [&](const std::string& sublayer) {
      return Sublayer{norm_layer(prefix + sublayer + ".norm"),
                      norm_layer(prefix + sublayer + ".post_norm")};
    };
    Layer layer;
    layer.self.qkv = linear_layer(prefix + ".self.qkv");
    layer.self.out = linear_layer(prefix + ".self.out");
    layer.global_qkv = linear_layer(prefix + ".global.qkv");
    layer.cross.q = linear_layer(prefix + ".cross.q");
    layer.cross.kv = linear_layer(prefix + ".cross.kv");
    layer.cross.out = linear_layer(prefix + ".cross.out");
    layer.ffn_in = linear_layer(prefix + ".ffn.in");
    layer.ffn_out = linear_layer(prefix + ".ffn.out");
    layer.self_norms = norms(".self");
    layer.cross_norms = norms(".cross");
    layer.ffn_norms = norms(".ffn");
    stack.layers.push_back(layer);
  }
  if (c_.final_norm) stack.final_norm = norm_layer(name + ".norm");
  return stack;
}

Transformer::Heads Transformer::make_heads() const {
  Heads heads;
  // The output matrix: a separate one, or the embedding that it is tied to.
  Weight matrix = p_.weight("output.weight");
  if (!matrix) matrix = (c_.has_decoder() ? decoder_ : encoder_).embedding.tokens;
  heads.output = {matrix, p_.weight("output.bias")};
  heads.dense = linear_layer("head.dense");
  heads.dense_norm = norm_layer("head.norm");
  heads.dense_activation = c_.head_activation;
  if (c_.head == Head::masked_lm && c_.head_activation == Activation::none) {
    heads.dense_activation = c_.activation;
  }
  heads.pooler = linear_layer("pooler");
  heads.next_sentence = linear_layer("next_sentence");
  heads.labels = linear_layer("head.output");
  return heads;
}

AttentionOptions Transformer::self_options(const Stack& stack, size_t layer) const {
  AttentionOptions o = stack.attention;
  o.causal = stack.config.causal;
  o.window = stack.config.window(layer);
  o.symmetric = o.window > 0 && !o.causal;
  o.bias = stack.bias;
  return o;
}

Mat* Transformer::new_map(const Pass& pass, size_t layer, const char* kind) const {
  if (!pass.maps) return nullptr;
  pass.maps->push_back(
      {std::string(pass.stack.config.name) + "." + std::to_string(layer) + "." + kind, {}});
  return &pass.maps->back().probabilities;
}

Var Transformer::embed_tokens(Ctx& ctx, const Pass& pass) const {
  const Var x = embed(ctx, pass.batch, pass.stack.embedding);
  if (!c_.embedding_norm) return x;
  return dropout(ctx, norm(ctx, x, pass.stack.embedding_norm), c_.embedding_dropout);
}

// LayerNorm(x + Sublayer(x)), x + Sublayer(LayerNorm(x)), or both norms inside.
template <class Branch>
Var Transformer::residual(Ctx& ctx, Var x, const Sublayer& norms, const Branch& branch) const {
  switch (c_.norm_place) {
    case NormPlace::post:
      return norm(ctx, branch(x, &x), norms.norm);
    case NormPlace::pre:
      return branch(norm(ctx, x, norms.norm), &x);
    case NormPlace::both:
      return residual_add(ctx, x,
                          norm(ctx, branch(norm(ctx, x, norms.norm), nullptr), norms.post_norm),
                          c_.dropout);
  }
  return x;
}

Var Transformer::sublayer_output(Ctx& ctx, Var x, const Linear& layer, const Var* skip) const {
  return skip ? linear_add(ctx, *skip, x, layer, c_.dropout) : linear(ctx, x, layer);
}

Var Transformer::self_attention(Ctx& ctx, const Pass& pass, size_t index, Var x,
                                const Var* skip) const {
  const Layer& layer = pass.stack.layers[index];
  AttentionOptions o = self_options(pass.stack, index);
  const int64_t q_width = pass.stack.config.query_width(), kv_width = pass.stack.config.key_width();
  auto [q, k, v] = split<3>(ctx, linear(ctx, x, layer.self.qkv), {q_width, kv_width, kv_width});
  if (pass.rope) {
    q = rope(ctx, q, *pass.rope, {o.heads, o.head_dim, c_.rope_layout});
    k = rope(ctx, k, *pass.rope, {o.kv_heads, o.head_dim, c_.rope_layout});
  }
  if (pass.global_tokens) o.global_tokens = pass.global_tokens->flags;
  o.probabilities = new_map(pass, index, "self");
  AttentionInputs inputs{q, k, v, pass.batch.offsets, pass.batch.offsets};
  KvBlocks cached;
  if (pass.cache) {
    cached = pass.cache->layer(kv_layout_.self[index]);
    inputs.cache = &cached;
  }
  Var heads = attention(ctx, inputs, o);
  if (pass.global_tokens) heads = global_attention(ctx, pass, layer, x, heads);
  if (!prunes_rows(pass, index)) return sublayer_output(ctx, heads, layer.self.out, skip);
  const Var output_skip = take_rows(ctx, *skip, *pass.output_rows);
  const Var output_heads = take_rows(ctx, heads, *pass.output_rows);
  return sublayer_output(ctx, output_heads, layer.self.out, &output_skip);
}

// Prefill: the last layer computes attention's output and the FFN only for output_rows; K and V are
// written for all rows. Not with cross-attention, parallel residuals or norms on both sides, where
// more than attention's output depends on x.
bool Transformer::prunes_rows(const Pass& pass, size_t layer) const {
  const bool some = pass.output_rows && std::ssize(*pass.output_rows) < pass.batch.rows();
  return some && layer + 1 == pass.stack.layers.size() && pass.cache && !c_.has_encoder() &&
         c_.residual == Residual::sequential && c_.norm_place != NormPlace::both;
}

// Longformer (Beltagy et al. 2020): global tokens attend to all keys, with separate
// projections.
Var Transformer::global_attention(Ctx& ctx, const Pass& pass, const Layer& layer, Var x,
                                  Var local) const {
  const GlobalTokens& global = *pass.global_tokens;
  const int64_t kv_width = pass.stack.config.key_width();
  const auto [q, k, v] =
      split<3>(ctx, linear(ctx, x, layer.global_qkv), {local.cols(), kv_width, kv_width});
  const Var queries = take_rows(ctx, q, global.rows);
  const Var heads =
      attention(ctx, {queries, k, v, global.offsets, pass.batch.offsets}, pass.stack.attention);
  return put_rows(ctx, local, heads, global.rows);
}

std::array<Var, 2> Transformer::cross_key_values(Ctx& ctx, const Layer& layer, Var memory) const {
  const int64_t width = layer.cross.kv.out() / 2;
  return split<2>(ctx, linear(ctx, memory, layer.cross.kv), {width, width});
}

Var Transformer::cross_attention(Ctx& ctx, const Pass& pass, size_t index, Var x,
                                 const Var* skip) const {
  const Layer& layer = pass.stack.layers[index];
  AttentionOptions o = pass.stack.attention;
  AttentionInputs inputs{.q = linear(ctx, x, layer.cross.q), .query_offsets = pass.batch.offsets};
  KvBlocks cached;
  if (pass.cache) {  // written by cache_source()
    cached = pass.cache->layer(kv_layout_.cross[index]);
    inputs.cache = &cached;
  } else {
    const auto [k, v] = cross_key_values(ctx, layer, *pass.memory);
    inputs.k = k, inputs.v = v, inputs.key_offsets = pass.source.offsets;
  }
  o.probabilities = new_map(pass, index, "cross");
  return sublayer_output(ctx, attention(ctx, inputs, o), layer.cross.out, skip);
}

Var Transformer::feed_forward(Ctx& ctx, const Layer& layer, Var x, const Var* skip) const {
  Var hidden;
  if (c_.ffn_kind == FfnKind::gated) {
    const int64_t width = layer.ffn_in.out() / 2;
    const auto [gate, up] = split<2>(ctx, linear(ctx, x, layer.ffn_in), {width, width});
    hidden = dropout(ctx, gated(ctx, gate, up, c_.activation), c_.activation_dropout);
  } else {
    hidden = linear(ctx, x, layer.ffn_in, c_.activation, c_.activation_dropout);
  }
  return sublayer_output(ctx, hidden, layer.ffn_out, skip);
}

Var Transformer::block(Ctx& ctx, const Pass& pass, size_t index, Var x) const {
  const Layer& layer = pass.stack.layers[index];
  if (c_.residual == Residual::parallel) {
    const Var h = norm(ctx, x, layer.self_norms.norm);
    const Var attended = self_attention(ctx, pass, index, h, nullptr);
    const Var fed = feed_forward(ctx, layer, norm(ctx, x, layer.ffn_norms.norm), nullptr);
    return residual_add(ctx, residual_add(ctx, x, attended, c_.dropout), fed, c_.dropout);
  }
  x = residual(ctx, x, layer.self_norms,
               [&](Var h, const Var* skip) { return self_attention(ctx, pass, index, h, skip); });
  if (pass.stack.config.cross_attention) {
    x = residual(ctx, x, layer.cross_norms, [&](Var h, const Var* skip) {
      return cross_attention(ctx, pass, index, h, skip);
    });
  }
  return residual(ctx, x, layer.ffn_norms,
                  [&](Var h, const Var* skip) { return feed_forward(ctx, layer, h, skip); });
}

Var Transformer::checkpointed_block(Ctx& ctx, const Pass& pass, size_t index, Var x) const {
  const Var inputs[] = {x, pass.memory.value_or(Var{})};
  const auto body = [this, pass, index](Ctx& c, std::span<const Var> in) {
    Pass inner = pass;
    if (inner.memory) inner.memory = in[1];
    return block(c, inner, index, in[0]);
  };
  return checkpoint(ctx, std::span(inputs).first(pass.memory ? 2 : 1), body);
}

Var Transformer::run(Ctx& ctx, Pass pass) const {
  Var x = embed_tokens(ctx, pass);
  if (c_.position == Position::rope) {
    pass.rope = rope_table(ctx, pass.batch.positions, pass.stack.rope.frequencies,
                           pass.stack.rope.magnitude);
  }
  // In inference a layer's memory is released once its output has been copied to x. Not with
  // attention maps, which are in that memory.
  const bool rewinds = !ctx.tape && !pass.maps;
  const bool checkpoints = checkpointing_ && ctx.tape && !pass.maps;
  for (size_t i = 0; i < pass.stack.layers.size(); ++i) {
    const Arena::Mark mark = ctx.arena.mark();
    const Var y = checkpoints ? checkpointed_block(ctx, pass, i, x) : block(ctx, pass, i, x);
    if (!rewinds) {
      x = y;
      continue;
    }
    x.value.rows = y.rows();
    ctx.parallel(y.rows(), row_grain(y.cols()), [&](int64_t begin, int64_t end) {
      std::copy_n(y.value.row(begin), (end - begin) * y.cols(), x.value.row(begin));
    });
    ctx.arena.rewind(mark);
  }
  if (pass.output_rows && !prunes_rows(pass, pass.stack.layers.size() - 1)) {
    x = take_rows(ctx, x, *pass.output_rows);
  }
  return c_.final_norm ? norm(ctx, x, pass.stack.final_norm) : x;
}

Var Transformer::hidden(Ctx& ctx, const ModelInput& input) const {
  const bool runs_encoder = c_.has_encoder() && !input.cache;
  const bool has_target = !c_.has_both() || input.cache || input.target.rows() > 0;
  const bool runs_decoder = c_.has_decoder() && has_target;
  std::optional<Var> memory;
  if (runs_encoder) {
    const GlobalTokens* global = input.global_tokens;
    std::optional<GlobalTokens> defaults;
    if (!global) defaults = default_global_tokens(c_, input.source);
    // Backward reads them again.
    if (defaults) global = ctx.tape ? ctx.tape->keep(std::move(*defaults)) : &*defaults;
    memory = run(ctx, {.stack = encoder_,
                       .batch = input.source,
                       .global_tokens = global,
                       .maps = input.encoder_maps,
                       .output_rows = runs_decoder ? std::nullopt : input.output_rows});
    if (input.encoder_hidden) *input.encoder_hidden = *memory;
    if (!runs_decoder) return *memory;
  }
  HEED_CHECK(runs_decoder, "hidden: a model with a KV cache must have a decoder");
  const Batch& rows = c_.has_both() ? input.target : input.source;
  if (input.cache) check_cache(rows, *input.cache, kv_layout_);
  return run(ctx, {.stack = decoder_,
                   .batch = rows,
                   .memory = memory,
                   .source = input.source,
                   .cache = input.cache,
                   .maps = input.decoder_maps,
                   .output_rows = input.output_rows});
}

Var Transformer::decode(Ctx& ctx, const Batch& rows, const KvView& cache,
                        std::optional<std::span<const int32_t>> output_rows) const {
  ModelInput input{.cache = &cache, .output_rows = output_rows};
  (c_.has_both() ? input.target : input.source) = rows;
  return hidden(ctx, input);
}

void Transformer::cache_source(Ctx& ctx, const Batch& source, const KvView& cache) const {
  HEED_CHECK(c_.has_both(), "cache_source: the model must have an encoder and a decoder");
  const Var memory = hidden(ctx, {.source = source});
  for (size_t i = 0; i < decoder_.layers.size(); ++i) {
    const Arena::Mark mark = ctx.arena.mark();
    const auto [k, v] = cross_key_values(ctx, decoder_.layers[i], memory);
    store_keys(ctx, k.value, v.value, source.offsets, cache.layer(kv_layout_.cross[i]));
    ctx.arena.rewind(mark);
  }
}

// masked_lm: norm(activation(x W + b)). And the scale of tied outputs (T5).
Var Transformer::before_output(Ctx& ctx, Var hidden) const {
  Var x = hidden;
  if (c_.head == Head::masked_lm) {
    x = norm(ctx, linear(ctx, x, heads_.dense, heads_.dense_activation), heads_.dense_norm);
  }
  if (c_.logits_scale == 1) return x;
  x.value_kept = true;  // the caller may still read the hidden states
  return scale(ctx, x, c_.logits_scale);
}

Var Transformer::logits(Ctx& ctx, Var hidden) const {
  Var x = before_output(ctx, hidden);
  if (c_.logits_soft_cap == 0) return linear(ctx, x, heads_.output);
  x.value_kept = true;
  const Var bounded =
      linear(ctx, scale(ctx, x, 1 / c_.logits_soft_cap), heads_.output, Activation::tanh);
  return scale(ctx, bounded, c_.logits_soft_cap);
}

LossSum Transformer::token_loss(Ctx& ctx, Var hidden, std::span<const int32_t> labels,
                                const CrossEntropyOptions& options) const {
  CrossEntropyOptions o = options;
  o.soft_cap = c_.logits_soft_cap;
  return vocabulary_cross_entropy(ctx, before_output(ctx, hidden), heads_.output, labels, o);
}

OutputProjection Transformer::output_projection(Ctx& ctx, Var hidden) const {
  return {before_output(ctx, hidden), heads_.output};
}

Var Transformer::pooled(Ctx& ctx, Var hidden, const Batch& batch) const {
  return linear(ctx, pool(ctx, hidden, batch.offsets, Pooling::first), heads_.pooler,
                Activation::tanh);
}

Var Transformer::next_sentence(Ctx& ctx, Var hidden, const Batch& batch) const {
  return linear(ctx, pooled(ctx, hidden, batch), heads_.next_sentence);
}

Var Transformer::classify(Ctx& ctx, Var hidden, const Batch& batch) const {
  Var x = hidden;
  if (c_.head != Head::token_classifier) {
    x = c_.pooler ? pooled(ctx, x, batch) : pool(ctx, x, batch.offsets, c_.pooling);
    if (c_.head_activation != Activation::none) {
      x = linear(ctx, x, heads_.dense, heads_.dense_activation);
    }
  }
  return linear(ctx, x, heads_.labels);
}

Var Transformer::sentence(Ctx& ctx, Var hidden, const Batch& batch) const {
  return pool(ctx, hidden, batch.offsets, c_.pooling);
}

}  // namespace heed
