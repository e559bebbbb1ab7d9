#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/rows/elementwise.h"
#include "ops/ops.h"
#include "ops/weight_gradient.h"

namespace heed {
namespace {

struct Record {
  Gradient *out_gradient, *q_gradient, *k_gradient, *v_gradient;
  kernels::Attention problem;
  Mat out;
  const float* log_sum_exp;
  RelativeBias bias{};

  void backward(Ctx& ctx);
};

RelativeDistances distances(const kernels::Attention& a) {
  RelativeDistances d;
  for (int64_t s = 0; s < a.sequences; ++s) {
    const int64_t first = a.first_position(s);
    d.back = std::max(d.back, first + a.queries(s) - 1);
    d.ahead = std::max(d.ahead, a.keys(s) - 1 - first);
  }
  d.back = std::max<int64_t>(d.back, 0), d.ahead = std::max<int64_t>(d.ahead, 0);
  // Nothing is read beyond a window, however long the sequence is.
  if (!a.global_keys) d.back = std::min(d.back, a.before + kernels::kBiasReach);
  return d;
}

// Recomputes the probabilities tile by tile (kernels/attention/attention.cc):
//   dV = Pᵀ dO,  dS = P ∘ (dO Vᵀ - Σ dO ∘ O),  dQ = scale · dS K,  dK = scale · dSᵀ Q.
void Record::backward(Ctx& ctx) {
  const Mat dy = ctx.tape->arrived(ctx, *out_gradient);
  const GradientTarget dq = ctx.tape->target(ctx, *q_gradient);
  const GradientTarget dk = ctx.tape->target(ctx, *k_gradient);
  const GradientTarget dv = ctx.tape->target(ctx, *v_gradient);
  const bool learned = bias.weights.gradient != nullptr;
  const RelativeDistances d = distances(problem);
  const int64_t bias_floats = learned ? problem.heads * d.stride() : 0;
  const Scratch d_bias(ctx, std::max<int64_t>(bias_floats, 1));
  const Scratch work(ctx, ctx.pool.threads() * kernels::attention_scratch_floats(problem, true));
  if (!ctx.measuring()) {
    std::fill_n(d_bias.data(), bias_floats, 0.0f);
    kernels::attention_backward(ctx.pool, problem,
                                {.out = out.data,
                                 .log_sum_exp = log_sum_exp,
                                 .d_out = dy.data,
                                 .out_stride = out.stride,
                                 .d_out_stride = dy.stride,
                                 .accumulate_q = dq.accumulate,
                                 .accumulate_k = dk.accumulate,
                                 .accumulate_v = dv.accumulate,
                                 .dq = dq.value.data,
                                 .dk = dk.value.data,
                                 .dv = dv.value.data,
                                 .dq_stride = dq.value.stride,
                                 .dk_stride = dk.value.stride,
                                 .dv_stride = dv.value.stride,
                                 .d_bias = learned ? d_bias.data() : nullptr},
                                work.data());
  }
  if (learned) relative_bias_backward(ctx, bias, problem.heads, d, d_bias.data());
}

kernels::Attention describe(const AttentionInputs& in, const AttentionOptions& o) {
  kernels::Attention a;
  a.heads = o.heads, a.kv_heads = o.kv_heads, a.head_dim = o.head_dim;
  a.sequences = static_cast<int64_t>(in.query_offsets.size()) - 1;
  a.query_offsets = in.query_offsets.data(), a.key_offsets = in.key_offsets.data();
  a.blocks = in.cache;
  a.q = in.q.value.data, a.k = in.k.value.data, a.v = in.v.value.data;
  a.q_stride = in.q.value.stride, a.k_stride = in.k.value.stride, a.v_stride = in.v.value.stride;
  a.scale = o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<float>(o.head_dim));
  a.soft_cap = o.soft_cap;
  const int64_t window = std::min(o.window, kernels::kUnlimited);
  if (window > 0) a.before = o.symmetric ? window : window - 1;
  if (window > 0 && o.symmetric) a.after = window;
  if (o.causal) a.after = 0;
  if (!o.global_tokens.empty()) a.global_queries = a.global_keys = o.global_tokens.data();
  return a;
}

// A table for each sequence, with room for its rows.
void check(const KvBlocks& cache, std::span<const int32_t> offsets, bool stores) {
  HEED_CHECK(cache.sequences + 1 == static_cast<int64_t>(offsets.size()),
             "attention: the cache must have a table for each sequence");
  for (int64_t s = 0; stores && s < cache.sequences; ++s) {
    HEED_CHECK(cache.tables[s].keys >=
                   offsets[static_cast<size_t>(s) + 1] - offsets[static_cast<size_t>(s)],
               "attention: the cache must have a position for each row");
  }
}

void check_keys(const AttentionInputs& in, const AttentionOptions& o) {
  const int64_t width = int64_t{o.kv_heads} * o.head_dim;
  if (in.cache) {
    const bool stores = in.k.rows() > 0;
    HEED_CHECK(!stores || (in.k.rows() == in.q.rows() && in.k.cols() == width),
               "attention: with a cache, k must have one row for each row of q");
    HEED_CHECK(o.global_tokens.empty() && !o.probabilities,
               "attention: global tokens and probabilities must not be used with a cache");
    check(*in.cache, in.query_offsets, stores);
    return;
  }
  HEED_CHECK(in.k.cols() == width && in.v.cols() == width,
             "attention: q, k and v must be [rows, heads · head_dim]");
  HEED_CHECK(in.query_offsets.size() == in.key_offsets.size(),
             "attention: q and k must have the same number of sequences");
  check_offsets(in.key_offsets, in.k.rows());
}

void check(const AttentionInputs& in, const AttentionOptions& o) {
  HEED_CHECK(o.heads > 0 && o.kv_heads > 0 && o.heads % o.kv_heads == 0 && o.head_dim > 0,
             "attention: heads must be a multiple of kv_heads");
  HEED_CHECK(in.q.cols() == int64_t{o.heads} * o.head_dim,
             "attention: q, k and v must be [rows, heads · head_dim]");
  check_offsets(in.query_offsets, in.q.rows());
  check_keys(in, o);
  HEED_CHECK(in.v.rows() == in.k.rows(), "attention: k and v must have the same rows");
  HEED_CHECK(o.window >= 0 && (!o.symmetric || o.window > 0),
             "attention: window must not be negative, and symmetric needs a window");
  check_dropout(o.dropout);
  check(o.bias, o.heads);
  HEED_CHECK(!(o.causal && o.symmetric), "attention: causal and symmetric must not be combined");
  HEED_CHECK(
      o.global_tokens.empty() || (o.global_tokens.size() == static_cast<size_t>(in.q.rows()) &&
                                  in.q.rows() == in.k.rows()),
      "attention: global tokens are for self-attention");
}

// How many probabilities sequence s has.
int64_t probability_count(const kernels::Attention& a, int64_t s) {
  return a.heads * a.queries(s) * a.keys(s);
}
int64_t probability_count(const kernels::Attention& a) {
  int64_t count = 0;
  for (int64_t s = 0; s < a.sequences; ++s) count += probability_count(a, s);
  return count;
}

}  // namespace

void store_keys(Ctx& ctx, ConstMat k, ConstMat v, std::span<const int32_t> offsets,
                const KvBlocks& cache) {
  HEED_CHECK(k.cols == int64_t{cache.kv_heads} * cache.head_dim && v.cols == k.cols,
             "store_keys: k and v must be [rows, kv_heads · head_dim] of the cache");
  HEED_CHECK(v.rows == k.rows, "store_keys: k and v must have the same rows");
  check_offsets(offsets, k.rows);
  check(cache, offsets, true);
  if (ctx.measuring()) return;
  kernels::write_kv(ctx.pool, cache,
                    {.offsets = offsets.data(),
                     .k = k.data,
                     .v = v.data,
                     .k_stride = k.stride,
                     .v_stride = v.stride});
}

Var attention(Ctx& ctx, const AttentionInputs& in, const AttentionOptions& o) {
  check(in, o);
  HEED_CHECK(!(ctx.tape && in.cache), "attention: a cache must not be used with a tape");
  if (in.cache && in.k.rows() > 0) {
    store_keys(ctx, in.k.value, in.v.value, in.query_offsets, *in.cache);
  }
  kernels::Attention problem = describe(in, o);
  Var y = ctx.activation(in.q.rows(), in.q.cols());
  if (ctx.tape && o.dropout > 0) problem.dropout = {ctx.next_site(), o.dropout};

  if (o.bias) {
    const RelativeDistances d = distances(problem);
    float* bias = ctx.matrix(o.heads, d.stride()).data;
    if (!ctx.measuring()) fill_relative_bias(o.bias, o.heads, d, bias);
    problem.bias = bias, problem.bias_stride = d.stride(), problem.bias_center = d.center();
  }
  const bool keep = ctx.tape || o.probabilities;
  float* lse = keep ? ctx.matrix(in.q.rows(), o.heads).data : nullptr;
  if (o.probabilities) *o.probabilities = ctx.matrix(1, probability_count(problem));
  const Scratch offsets(ctx, o.probabilities ? 2 * problem.sequences : 1);
  const Scratch work(ctx, ctx.pool.threads() * kernels::attention_scratch_floats(problem, false));
  if (!ctx.measuring()) {
    auto* probability_offsets = reinterpret_cast<int64_t*>(offsets.data());
    if (o.probabilities) {
      int64_t at = 0;
      for (int64_t s = 0; s < problem.sequences; ++s) {
        probability_offsets[s] = at;
        at += probability_count(problem, s);
      }
    }
    kernels::attention_forward(ctx.pool, problem,
                               {.out = y.value.data,
                                .out_stride = y.value.stride,
                                .log_sum_exp = lse,
                                .probabilities = o.probabilities ? o.probabilities->data : nullptr,
                                .probability_offsets = probability_offsets},
                               work.data());
  }
  if (ctx.tape) {
    HEED_CHECK(in.q.gradient && in.k.gradient && in.v.gradient,
               "attention: q, k and v must have gradients");
    ctx.tape->record(y.gradient, Record{y.gradient, in.q.gradient, in.k.gradient, in.v.gradient,
                                        problem, y.value, lse, o.bias});
    for (const Var& kept : {in.q, in.k, in.v, y}) keep_value(kept);  // y for Σ dO ∘ O
  }
  return y;
}

}  // namespace heed
