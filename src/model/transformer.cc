#include "model/transformer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace heed {
namespace {

// RoPE's frequencies for heads of this width, stretched as the config says.
std::vector<float> rope_frequencies_of(const ModelConfig& c, int head_dim) {
  const int rotary = static_cast<int>(static_cast<float>(head_dim) * c.rope_fraction) / 2 * 2;
  std::vector<float> frequencies = rope_frequencies(rotary, c.rope_base);
  if (c.rope_scaling == RopeScaling::linear) {
    for (float& f : frequencies) f /= c.rope_factor;
  } else if (c.rope_scaling == RopeScaling::llama3) {
    // Long waves are stretched, short ones kept, and what lies between is blended.
    const auto length = static_cast<float>(c.rope_original_positions);
    const float longest = length / c.rope_low_frequency_factor;
    const float shortest = length / c.rope_high_frequency_factor;
    for (float& f : frequencies) {
      const float wave = 2 * std::numbers::pi_v<float> / f;
      if (wave > longest) {
        f /= c.rope_factor;
      } else if (wave > shortest) {
        const float blend = (length / wave - c.rope_low_frequency_factor) /
                            (c.rope_high_frequency_factor - c.rope_low_frequency_factor);
        f = (1 - blend) * f / c.rope_factor + blend * f;
      }
    }
  }
  return frequencies;
}

// Rows go on where the cache ends; that is what relative positions and masks go by.
void check_cache(const Batch& batch, const KvView& cache, const KvLayout& layout) {
  HEED_CHECK(cache.layout && cache.layout->groups.size() == layout.groups.size() &&
                 cache.sequences() == batch.sequences(),
             "decode: tables for every group and sequence");
  for (const KvLayout::Place& place : layout.self) {
    const KvTable* tables = cache.layer(place).tables;
    for (size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
      const auto begin = static_cast<size_t>(batch.offsets[s]), rows = batch.offsets[s + 1] - begin;
      HEED_CHECK(rows == 0 || batch.positions[begin] + static_cast<int64_t>(rows) == tables[s].keys,
                 "decode: positions that do not go on from the cache");
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
    : c_(config),
      p_(parameters),
      has_encoder_(config.family != Family::decoder_only),
      has_decoder_(config.family != Family::encoder_only) {
  if (c_.position == Position::sinusoidal) {
    sinusoids_ =
        sinusoidal_table(c_.max_positions + c_.position_offset, c_.width, c_.sinusoid_layout);
  }
  if (has_encoder_)
    encoder_ = make_stack("encoder", "embedding", c_.encoder_layers, c_.heads, false);
  if (has_decoder_) {
    const int heads = c_.decoder_heads ? c_.decoder_heads : c_.heads;
    decoder_ = make_stack("decoder", has_encoder_ ? "target" : "embedding", c_.decoder_layers,
                          heads, true);
    kv_layout_ = heed::kv_layout(c_);
  }
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

Transformer::Stack Transformer::make_stack(const std::string& name, const std::string& embedding,
                                           int layers, int heads, bool causal) {
  Stack stack;
  stack.name = name, stack.heads = heads, stack.causal = causal;
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

  if (c_.position == Position::t5_bias) {
    stack.t5_bias = {p_.weight(name + ".t5_bias"),
                     {c_.t5_buckets, c_.t5_max_distance, /*bidirectional=*/!causal}};
  }
  if (c_.position == Position::alibi) stack.alibi_slopes = alibi_slopes(heads);
  if (c_.position == Position::rope) {
    stack.rope_frequencies = rope_frequencies_of(c_, attention_options(stack).head_dim);
  }
  for (int i = 0; i < layers; ++i) {
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

AttentionOptions Transformer::attention_options(const Stack& stack) const {
  return {.heads = stack.heads,
          .kv_heads = c_.kv_heads ? c_.kv_heads : stack.heads,
          .head_dim = c_.head_dim ? c_.head_dim : static_cast<int>(c_.width / stack.heads),
          .scale = c_.attention_scale,
          .soft_cap = c_.attention_soft_cap,
          .dropout = c_.attention_dropout};
}

AttentionOptions Transformer::self_options(const Stack& stack, size_t layer) const {
  AttentionOptions o = attention_options(stack);
  o.causal = stack.causal;
  if (c_.attention != AttentionSpan::full) o.window = c_.windows[layer % c_.windows.size()];
  o.symmetric = o.window > 0 && !stack.causal;
  if (c_.position == Position::t5_bias) o.t5_bias = &stack.t5_bias;
  o.alibi_slopes = stack.alibi_slopes;
  return o;
}

Mat* Transformer::new_map(const Pass& pass, size_t layer, const char* kind) const {
  if (!pass.maps) return nullptr;
  pass.maps->push_back({pass.stack.name + "." + std::to_string(layer) + "." + kind, {}});
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
  const int64_t q_width = int64_t{o.heads} * o.head_dim,
                kv_width = int64_t{o.kv_heads} * o.head_dim;
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
  if (!leaves_rows_out(pass, index)) return sublayer_output(ctx, heads, layer.self.out, skip);
  const Var wanted_skip = take_rows(ctx, *skip, *pass.wanted);
  return sublayer_output(ctx, take_rows(ctx, heads, *pass.wanted), layer.self.out, &wanted_skip);
}

// In the last layer, rows that nobody wants end when their keys and values are known; where
// attention is not alone between x and what comes next, they go on to the end.
bool Transformer::leaves_rows_out(const Pass& pass, size_t layer) const {
  const bool some = pass.wanted && std::ssize(*pass.wanted) < pass.batch.rows();
  return some && layer + 1 == pass.stack.layers.size() && !has_encoder_ &&
         c_.residual == Residual::sequential && c_.norm_place != NormPlace::both;
}

// Longformer (Beltagy et al. 2020): global tokens see everything, with projections of their own.
Var Transformer::global_attention(Ctx& ctx, const Pass& pass, const Layer& layer, Var x,
                                  Var local) const {
  const GlobalTokens& global = *pass.global_tokens;
  const AttentionOptions o = attention_options(pass.stack);
  const int64_t kv_width = int64_t{o.kv_heads} * o.head_dim;
  const auto [q, k, v] =
      split<3>(ctx, linear(ctx, x, layer.global_qkv), {local.cols(), kv_width, kv_width});
  const Var queries = take_rows(ctx, q, global.rows);
  const Var heads = attention(ctx, {queries, k, v, global.offsets, pass.batch.offsets}, o);
  return put_rows(ctx, local, heads, global.rows);
}

std::array<Var, 2> Transformer::cross_key_values(Ctx& ctx, const Layer& layer, Var memory) const {
  const int64_t width = layer.cross.kv.out() / 2;
  return split<2>(ctx, linear(ctx, memory, layer.cross.kv), {width, width});
}

Var Transformer::cross_attention(Ctx& ctx, const Pass& pass, size_t index, Var x,
                                 const Var* skip) const {
  const Layer& layer = pass.stack.layers[index];
  AttentionOptions o = attention_options(pass.stack);
  AttentionInputs inputs{.q = linear(ctx, x, layer.cross.q), .query_offsets = pass.batch.offsets};
  KvBlocks cached;
  if (pass.cache) {  // cross_keys() has put them there
    cached = pass.cache->layer(kv_layout_.cross[index]);
    inputs.cache = &cached;
  } else {
    const auto [k, v] = cross_key_values(ctx, layer, *pass.memory);
    inputs.k = k, inputs.v = v, inputs.key_offsets = pass.source->offsets;
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
  if (pass.stack.causal && has_encoder_) {
    x = residual(ctx, x, layer.cross_norms, [&](Var h, const Var* skip) {
      return cross_attention(ctx, pass, index, h, skip);
    });
  }
  return residual(ctx, x, layer.ffn_norms,
                  [&](Var h, const Var* skip) { return feed_forward(ctx, layer, h, skip); });
}

namespace {

void copy_rows(Ctx& ctx, const Mat& from, const Mat& to) {
  ctx.parallel(from.rows, row_grain(from.cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) std::copy_n(from.row(r), from.cols, to.row(r));
  });
}

// While it lives, ops record on another tape, in memory that is given back at the end.
class TapeOfItsOwn {
 public:
  explicit TapeOfItsOwn(Ctx& ctx) : ctx_(ctx), outer_(ctx.tape), mark_(ctx.arena.mark()) {
    ctx.tape = &tape_;
  }
  ~TapeOfItsOwn() {
    ctx_.tape = outer_;
    tape_.clear();
    ctx_.arena.rewind(mark_);
  }
  TapeOfItsOwn(const TapeOfItsOwn&) = delete;
  TapeOfItsOwn& operator=(const TapeOfItsOwn&) = delete;

  Tape& tape() { return tape_; }
  // The same value, with a gradient on this tape. No op may work in its place.
  Var input(const Var& x) {
    return {x.value, tape_.gradient(x.rows(), x.cols()), /*value_kept=*/true};
  }

 private:
  Ctx& ctx_;
  Tape tape_;
  Tape* outer_;
  Arena::Mark mark_;
};

// The first record of a tape, and so the last to run: brings a gradient out to the outer tape.
struct BringOut {
  Gradient* inner;
  Mat outer;
  void backward(Ctx& ctx) { copy_rows(ctx, ctx.tape->arrived(ctx, *inner), outer); }
};

// An input of what is run again, whose gradient goes on from what has arrived outside: added to in
// the order of an ordinary backward, it has the same bits.
Var input_again(Ctx& ctx, TapeOfItsOwn& own, const Var& x, const GradientTarget& outer) {
  const Var input = own.input(x);
  own.tape().record(input.gradient, BringOut{input.gradient, outer.value});
  if (outer.accumulate) {
    copy_rows(ctx, outer.value, own.tape().target(ctx, *input.gradient).value);
  }
  return input;
}

}  // namespace

// What a layer needs to run again. Batches are views, so they are copied; what they point to
// outlives backward.
struct Transformer::LayerAgain {
  const Transformer* model;
  const Stack* stack;
  size_t layer;
  uint32_t site;  // of its first random numbers
  Batch batch, source;
  RopeTable rope;
  const GlobalTokens* global_tokens;
  Var x, memory;
  Gradient* out;
  bool has_rope, has_memory;

  void backward(Ctx& ctx) {
    // Outside first: what comes after it is given back.
    const Mat dy = ctx.tape->arrived(ctx, *out);
    const GradientTarget dx = ctx.tape->target(ctx, *x.gradient);
    const GradientTarget d_memory =
        has_memory ? ctx.tape->target(ctx, *memory.gradient) : GradientTarget{};
    const uint32_t site_before = std::exchange(ctx.site, site);
    {
      TapeOfItsOwn own(ctx);
      const Var x_again = input_again(ctx, own, x, dx);
      const Var memory_again = has_memory ? input_again(ctx, own, memory, d_memory) : Var{};
      const Pass pass{.stack = *stack,
                      .batch = batch,
                      .rope = has_rope ? &rope : nullptr,
                      .global_tokens = global_tokens,
                      .memory = has_memory ? &memory_again : nullptr,
                      .source = has_memory ? &source : nullptr};
      const Var y = model->block(ctx, pass, layer, x_again);
      copy_rows(ctx, dy, own.tape().target(ctx, *y.gradient).value);
      own.tape().backward(ctx);
    }
    ctx.site = site_before;
  }
};

// A layer of which only input and output stay.
Var Transformer::forgetful_block(Ctx& ctx, const Pass& pass, size_t layer, Var x) const {
  const Var y = ctx.activation(x.rows(), x.cols());
  keep_value(x);
  LayerAgain again{.model = this,
                   .stack = &pass.stack,
                   .layer = layer,
                   .site = ctx.site,
                   .batch = pass.batch,
                   .source = pass.source ? *pass.source : Batch{},
                   .rope = pass.rope ? *pass.rope : RopeTable{},
                   .global_tokens = pass.global_tokens,
                   .x = x,
                   .memory = pass.memory ? *pass.memory : Var{},
                   .out = y.gradient,
                   .has_rope = pass.rope != nullptr,
                   .has_memory = pass.memory != nullptr};
  if (pass.memory) keep_value(*pass.memory);
  {
    // With a tape, or there would be no dropout; what it records is forgotten at once.
    TapeOfItsOwn own(ctx);
    const Var memory = pass.memory ? own.input(*pass.memory) : Var{};
    Pass inner = pass;
    if (pass.memory) inner.memory = &memory;
    copy_rows(ctx, block(ctx, inner, layer, own.input(x)).value, y.value);
  }
  ctx.tape->record(y.gradient, again);
  return y;
}

Var Transformer::run(Ctx& ctx, const Pass& pass) const {
  Var x = embed_tokens(ctx, pass);
  Pass with_rope = pass;
  RopeTable table;
  if (c_.position == Position::rope) {
    table = rope_table(ctx, pass.batch.positions, pass.stack.rope_frequencies);
    with_rope.rope = &table;
  }
  // In inference a layer's memory is given back when its output has been copied down; attention
  // maps would be lost with it.
  const bool rewinds = !ctx.tape && !pass.maps;
  for (size_t i = 0; i < pass.stack.layers.size(); ++i) {
    const Arena::Mark mark = ctx.arena.mark();
    const bool forgets = recompute_ && ctx.tape && !pass.maps;
    const Var y = forgets ? forgetful_block(ctx, with_rope, i, x) : block(ctx, with_rope, i, x);
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
  if (pass.wanted && !leaves_rows_out(pass, pass.stack.layers.size() - 1)) {
    x = take_rows(ctx, x, *pass.wanted);
  }
  return c_.final_norm ? norm(ctx, x, pass.stack.final_norm) : x;
}

Var Transformer::encode(Ctx& ctx, const ModelInput& input, AttentionMaps* maps) const {
  HEED_CHECK(has_encoder_, "encode: a decoder_only model");
  return run(ctx, {.stack = encoder_,
                   .batch = input.batch,
                   .global_tokens = input.global_tokens,
                   .maps = maps});
}

Var Transformer::decode(Ctx& ctx, const Batch& batch, AttentionMaps* maps) const {
  HEED_CHECK(c_.family == Family::decoder_only, "decode: this family's decoder needs a memory");
  return run(ctx, {.stack = decoder_, .batch = batch, .maps = maps});
}

Var Transformer::decode(Ctx& ctx, const Batch& target, Var memory, const Batch& source,
                        AttentionMaps* maps) const {
  HEED_CHECK(c_.family == Family::encoder_decoder, "decode: this family has no memory");
  return run(
      ctx,
      {.stack = decoder_, .batch = target, .memory = &memory, .source = &source, .maps = maps});
}

Var Transformer::decode(Ctx& ctx, const Batch& batch, const KvView& cache) const {
  HEED_CHECK(has_decoder_, "decode: an encoder_only model");
  check_cache(batch, cache, kv_layout_);
  return run(ctx, {.stack = decoder_, .batch = batch, .cache = &cache});
}

Var Transformer::decode(Ctx& ctx, const Batch& batch, const KvView& cache,
                        std::span<const int32_t> wanted) const {
  HEED_CHECK(has_decoder_, "decode: an encoder_only model");
  check_cache(batch, cache, kv_layout_);
  return run(ctx, {.stack = decoder_, .batch = batch, .cache = &cache, .wanted = &wanted});
}

void Transformer::cross_keys(Ctx& ctx, Var memory, const Batch& source, const KvView& cache) const {
  HEED_CHECK(c_.family == Family::encoder_decoder, "cross_keys: this family has no memory");
  for (size_t i = 0; i < decoder_.layers.size(); ++i) {
    const Arena::Mark mark = ctx.arena.mark();
    const auto [k, v] = cross_key_values(ctx, decoder_.layers[i], memory);
    store_keys(ctx, k.value, v.value, source.offsets, cache.layer(kv_layout_.cross[i]));
    ctx.arena.rewind(mark);
  }
}

// The output matrix: its own, or the embedding that it is tied to.
Linear Transformer::output_layer() const {
  Weight matrix = p_.weight("output.weight");
  if (!matrix) matrix = has_decoder_ ? decoder_.embedding.tokens : encoder_.embedding.tokens;
  return {matrix, p_.weight("output.bias")};
}

// masked_lm: norm(activation(x W + b)). And the scale of tied outputs (T5).
Var Transformer::before_output(Ctx& ctx, Var hidden) const {
  Var x = hidden;
  if (c_.head == Head::masked_lm) {
    const Activation activation =
        c_.head_activation != Activation::none ? c_.head_activation : c_.activation;
    x = norm(ctx, linear(ctx, x, linear_layer("head.dense"), activation), norm_layer("head.norm"));
  }
  if (c_.logits_scale == 1) return x;
  x.value_kept = true;  // hidden states stay as they are for whoever else reads them
  return scale(ctx, x, c_.logits_scale);
}

Var Transformer::logits(Ctx& ctx, Var hidden) const {
  Var x = before_output(ctx, hidden);
  if (c_.logits_soft_cap == 0) return linear(ctx, x, output_layer());
  x.value_kept = true;
  const Var bounded =
      linear(ctx, scale(ctx, x, 1 / c_.logits_soft_cap), output_layer(), Activation::tanh);
  return scale(ctx, bounded, c_.logits_soft_cap);
}

LossSum Transformer::token_loss(Ctx& ctx, Var hidden, std::span<const int32_t> labels,
                                const CrossEntropyOptions& options) const {
  CrossEntropyOptions o = options;
  o.soft_cap = c_.logits_soft_cap;
  return vocabulary_cross_entropy(ctx, before_output(ctx, hidden), output_layer(), labels, o);
}

OutputRows Transformer::output_rows(Ctx& ctx, Var hidden) const {
  return {before_output(ctx, hidden), output_layer()};
}

Var Transformer::pooled(Ctx& ctx, Var hidden, const Batch& batch) const {
  return linear(ctx, pool(ctx, hidden, batch.offsets, Pooling::first), linear_layer("pooler"),
                Activation::tanh);
}

Var Transformer::next_sentence(Ctx& ctx, Var hidden, const Batch& batch) const {
  return linear(ctx, pooled(ctx, hidden, batch), linear_layer("next_sentence"));
}

Var Transformer::classify(Ctx& ctx, Var hidden, const Batch& batch) const {
  Var x = hidden;
  if (c_.head != Head::token_classifier) {
    x = c_.pooler ? pooled(ctx, x, batch) : pool(ctx, x, batch.offsets, c_.pooling);
    if (c_.head_activation != Activation::none) {
      x = linear(ctx, x, linear_layer("head.dense"), c_.head_activation);
    }
  }
  return linear(ctx, x, linear_layer("head.output"));
}

Var Transformer::sentence(Ctx& ctx, Var hidden, const Batch& batch) const {
  return pool(ctx, hidden, batch.offsets, c_.pooling);
}

}  // namespace heed
