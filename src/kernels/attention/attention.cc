#include "kernels/attention/attention.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/attention/attention_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "kernels/attention/attention_rows-inl.h"
#include "kernels/matmul/strided_matmul-inl.h"
#include "kernels/simd/simd_types-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace {

// Transposes 4 rows × 4 columns: to[c * kKeyTile + r] = from[r * stride + c].
HWY_INLINE void transpose_4x4(const float* from, int64_t stride, float* to) {
#if HWY_TARGET == HWY_SCALAR  // has no vectors of four
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) to[c * kKeyTile + r] = from[r * stride + c];
  }
#else
  const hn::Full128<float> d;
  const hn::Full128<double> d2;  // pairs of floats, moved as one
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + stride);
  const auto r2 = hn::LoadU(d, from + 2 * stride), r3 = hn::LoadU(d, from + 3 * stride);
  const auto lo01 = hn::BitCast(d2, hn::InterleaveLower(d, r0, r1));
  const auto lo23 = hn::BitCast(d2, hn::InterleaveLower(d, r2, r3));
  const auto hi01 = hn::BitCast(d2, hn::InterleaveUpper(d, r0, r1));
  const auto hi23 = hn::BitCast(d2, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, lo01, lo23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, lo01, lo23)), d, to + kKeyTile);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, hi01, hi23)), d, to + 2 * kKeyTile);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, hi01, hi23)), d, to + 3 * kKeyTile);
#endif
}

// Rows of keys (or values) into tiles [head_dim, kKeyTile], so that a vector holds consecutive keys
// of one coordinate. Columns up to the next kColumnStep beyond the last row are zero.
void pack_transposed(const float* from, int64_t stride, int64_t rows, int64_t head_dim,
                     float* packed) {
  for (int64_t key = 0; key < rows; key += kKeyTile, packed += head_dim * kKeyTile) {
    const int64_t tile_rows = std::min(kKeyTile, rows - key);
    const int64_t padded = (tile_rows + kColumnStep - 1) / kColumnStep * kColumnStep;
    for (int64_t r = 0; r < padded; r += 4) {
      const float* row = from + (key + r) * stride;
      int64_t c = 0;
      if (r + 4 <= tile_rows) {
        for (; c + 4 <= head_dim; c += 4) transpose_4x4(row + c, stride, packed + c * kKeyTile + r);
      }
      for (; c < head_dim; ++c) {
        for (int64_t i = 0; i < 4; ++i) {
          packed[c * kKeyTile + r + i] = r + i < tile_rows ? row[i * stride + c] : 0.0f;
        }
      }
    }
  }
}

// scores [queries, columns] = Q Kᵀ, unscaled.
void raw_scores(const ScoreTile& tile, const float* packed_keys, float* scores) {
  const Attention& a = tile.p().a;
  strided_matmul({.m = tile.q.queries,
                  .n = tile.columns,
                  .k = a.head_dim,
                  .a = tile.q.q(),
                  .a_row = a.q_stride,
                  .a_col = 1,
                  .b = packed_keys + tile.key * a.head_dim + tile.column,
                  .b_row = kKeyTile,
                  .c = scores + tile.column,
                  .c_row = kKeyTile,
                  .accumulate = false});
}

// Data of one row in backward, besides its scores.
struct RowBackward {
  float lse, delta;      // delta = Σ dO ∘ O
  const float* factors;  // dropout's; null: none
  float* d_bias;         // null: not requested
};

// Row r of backward, in place: `row` holds raw scores and becomes the dropped-out probabilities
// (what dV needs); `d_row` holds dO · Vᵀ and becomes d(raw score) (what dQ and dK need):
//   dS = P ∘ (f ∘ dP - delta).
void backward_row(const ScoreTile& tile, int64_t r, const Scoring& scoring, const RowBackward& b,
                  float* row, float* d_row) {
  const FloatTag d;
  const RowMask mask(tile, tile.q.query + r);
  const float* bias = tile.bias_row(tile.p().a.bias, tile.q.head, tile.q.query + r);
  const FloatVec shift = hn::Set(d, b.lse), deltas = hn::Set(d, b.delta);
  for (int64_t c = tile.column; c < tile.end(); c += static_cast<int64_t>(hn::Lanes(d))) {
    const FloatVec score = scoring(hn::LoadU(d, row + c));
    FloatVec s = score;
    if (bias) s = hn::Add(s, hn::LoadU(d, bias + c));
    const FloatVec probability = Exp(d, hn::Sub(mask.apply(s, c), shift));
    FloatVec dp = hn::LoadU(d, d_row + c);
    FloatVec dropped = probability;
    if (b.factors) {
      const FloatVec f = hn::LoadU(d, b.factors + c);
      dp = hn::Mul(dp, f);
      dropped = hn::Mul(probability, f);
    }
    const FloatVec ds = hn::Mul(probability, hn::Sub(dp, deltas));
    if (b.d_bias) hn::StoreU(hn::Add(hn::LoadU(d, b.d_bias + c), ds), d, b.d_bias + c);
    hn::StoreU(dropped, d, row + c);
    hn::StoreU(hn::Mul(ds, scoring.derivative(score)), d, d_row + c);
  }
}

float dot(const float* x, const float* y, int64_t n) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  FloatVec sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    sum = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), sum);
  }
  if (i < n) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(n - i));
    sum = hn::MulAdd(hn::MaskedLoad(mask, d, x + i), hn::MaskedLoad(mask, d, y + i), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// Backward for a tile of queries; dk and dv of the whole sequence are added to.
void backward_tile(const QueryTile& q, const AttentionGradients& g, const Workspace& work) {
  const Problem& p = q.p;
  const Attention& a = p.a;
  const Scoring scoring(a);
  const int64_t kv_column = int64_t{p.kv_head} * a.head_dim;
  const float* d_out = g.d_out + q.row() * g.d_out_stride + q.column();
  const float* out = g.out + q.row() * g.out_stride + q.column();
  float deltas[kQueryTile];
  for (int64_t r = 0; r < q.queries; ++r) {
    deltas[r] = dot(d_out + r * g.d_out_stride, out + r * g.out_stride, a.head_dim);
  }

  for_each_key_tile(q, [&](const ScoreTile& tile) {
    raw_scores(tile, work.keys, work.scores);
    strided_matmul({.m = q.queries,  // dP = dO Vᵀ
                    .n = tile.columns,
                    .k = a.head_dim,
                    .a = d_out,
                    .a_row = g.d_out_stride,
                    .a_col = 1,
                    .b = work.values + tile.key * a.head_dim + tile.column,
                    .b_row = kKeyTile,
                    .c = work.d_scores + tile.column,
                    .c_row = kKeyTile,
                    .accumulate = false});
    for (int64_t r = 0; r < q.queries; ++r) {
      const bool drops = a.dropout.p > 0;
      if (drops) {
        dropout_factors(a.dropout, tile.dropout_group(q.head, q.query + r), work.factors,
                        tile.end());
      }
      const RowBackward row{.lse = g.log_sum_exp[(q.row() + r) * a.heads + q.head],
                            .delta = deltas[r],
                            .factors = drops ? work.factors : nullptr,
                            .d_bias = tile.bias_row(g.d_bias, q.head, q.query + r)};
      backward_row(tile, r, scoring, row, work.scores + r * kKeyTile, work.d_scores + r * kKeyTile);
    }
    const int64_t key_row = p.first_key + tile.first_key();
    strided_matmul({.m = q.queries,  // dQ += dS K
                    .n = a.head_dim,
                    .k = tile.keys,
                    .a = work.d_scores + tile.column,
                    .a_row = kKeyTile,
                    .a_col = 1,
                    .b = p.k + tile.first_key() * a.k_stride,
                    .b_row = a.k_stride,
                    .c = g.dq + q.row() * g.dq_stride + q.column(),
                    .c_row = g.dq_stride,
                    .accumulate = true});
    strided_matmul({.m = tile.keys,  // dK += dSᵀ Q
                    .n = a.head_dim,
                    .k = q.queries,
                    .a = work.d_scores + tile.column,
                    .a_row = 1,
                    .a_col = kKeyTile,
                    .b = q.q(),
                    .b_row = a.q_stride,
                    .c = g.dk + key_row * g.dk_stride + kv_column,
                    .c_row = g.dk_stride,
                    .accumulate = true});
    strided_matmul({.m = tile.keys,  // dV += Pᵀ dO
                    .n = a.head_dim,
                    .k = q.queries,
                    .a = work.scores + tile.column,
                    .a_row = 1,
                    .a_col = kKeyTile,
                    .b = d_out,
                    .b_row = g.d_out_stride,
                    .c = g.dv + key_row * g.dv_stride + kv_column,
                    .c_row = g.dv_stride,
                    .accumulate = true});
  });
}

// A loop instead of memset: rows are short (one head), and the call would cost more.
void zero_rows(float* rows, int64_t count, int64_t stride, int64_t cols) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < count; ++r, rows += stride) {
    int64_t c = 0;
    for (; c + lanes <= cols; c += lanes) hn::StoreU(hn::Zero(d), d, rows + c);
    if (c < cols) {
      hn::BlendedStore(hn::Zero(d), hn::FirstN(d, static_cast<size_t>(cols - c)), d, rows + c);
    }
  }
}

void backward(const Attention& a, const AttentionGradients& g, int64_t sequence, int kv_head,
              const Workspace& work) {
  const Problem p(a, sequence, kv_head);
  pack_transposed(p.k, a.k_stride, p.keys, a.head_dim, work.keys);
  pack_transposed(p.v, a.v_stride, p.keys, a.head_dim, work.values);
  const int group = a.heads / a.kv_heads;
  const int64_t kv_column = int64_t{kv_head} * a.head_dim;
  if (!g.accumulate_k) {
    zero_rows(g.dk + p.first_key * g.dk_stride + kv_column, p.keys, g.dk_stride, a.head_dim);
  }
  if (!g.accumulate_v) {
    zero_rows(g.dv + p.first_key * g.dv_stride + kv_column, p.keys, g.dv_stride, a.head_dim);
  }
  if (!g.accumulate_q) {
    zero_rows(g.dq + p.first_query * g.dq_stride + group * kv_column, p.queries, g.dq_stride,
              int64_t{group} * a.head_dim);
  }
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int64_t query = 0; query < p.queries; query += kQueryTile) {
      backward_tile({p, head, query, std::min(kQueryTile, p.queries - query)}, g, work);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {
namespace {

HWY_EXPORT(backward);

void check(const Attention& a) {
  HEED_CHECK(a.kv_heads > 0 && a.heads > 0 && a.heads % a.kv_heads == 0 && a.head_dim > 0,
             "attention: heads must be a multiple of kv_heads");
  HEED_CHECK(a.before >= 0 && a.after >= 0, "attention: the window must not be negative");
}

void check_cache(const Attention& a, const AttentionOutput& output) {
  HEED_CHECK(a.blocks->kv_heads == a.kv_heads && a.blocks->head_dim == a.head_dim,
             "attention: kv_heads and head_dim must be those of the KV cache");
  HEED_CHECK(a.blocks->sequences == a.sequences,
             "attention: the KV cache must have a table for each sequence");
  HEED_CHECK(!a.global_queries && !a.global_keys && a.dropout.p == 0 && !output.log_sum_exp &&
                 !output.probabilities,
             "attention: global tokens, dropout, log_sum_exp and probabilities must not be used "
             "with a KV cache");
}

// Keys of one sequence to pack; those of a KV cache are read in place.
int64_t most_packed_keys(const Attention& a) {
  int64_t most = 0;
  for (int64_t s = 0; !a.blocks && s < a.sequences; ++s) most = std::max(most, a.keys(s));
  return most;
}

}  // namespace

int64_t attention_scratch_floats(const Attention& attention, bool backward) {
  return Workspace(nullptr, attention, most_packed_keys(attention), backward).floats;
}

void attention_forward(ThreadPool& pool, const Attention& a, const AttentionOutput& output,
                       float* scratch) {
  check(a);
  if (a.blocks) check_cache(a, output);
  HEED_CHECK(!output.probabilities || output.log_sum_exp,
             "attention: log_sum_exp must be requested with probabilities");
  const int64_t keys = most_packed_keys(a), floats = attention_scratch_floats(a, false);
  for_each_query_range(pool, a,
                       [&](int64_t sequence, int kv_head, const QueryRange& range, int64_t share) {
                         forward_queries(Problem(a, sequence, kv_head), range, output, sequence,
                                         Workspace(scratch + share * floats, a, keys, false));
                       });
}

void attention_backward(ThreadPool& pool, const Attention& a, const AttentionGradients& gradients,
                        float* scratch) {
  check(a);
  HEED_CHECK(!a.blocks, "attention: backward must not be called with a KV cache");
  const int64_t keys = most_packed_keys(a), floats = attention_scratch_floats(a, true);
  const auto run = HWY_DYNAMIC_DISPATCH(backward);
  // The bias gradient of a head sums over sequences: one thread, one order.
  const bool whole_heads = gradients.d_bias != nullptr;
  for_each_problem(pool, a, whole_heads, [&](int64_t sequence, int kv_head, int64_t share) {
    run(a, gradients, sequence, kv_head, Workspace(scratch + share * floats, a, keys, true));
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
