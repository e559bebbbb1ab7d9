// Attention's forward: tiles of queries against tiles of keys, with an online softmax.
//
// K and V are read in blocks of kKvBlock positions, the layout of the KV cache (kv_blocks.h); rows
// are packed so first. A tile of queries is worked on in blocks of kAttentionTileRows rows, each over the
// columns that any of its rows sees: a causal mask costs a few columns a row.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_forward.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/attention/attention_matmul-inl.h"
#include "kernels/attention/attention_rows-inl.h"
#include "kernels/matmul/columns-inl.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr float kLog2E = 1.44269504089f, kLn2 = 0.69314718056f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// ---- K and V ------------------------------------------------------------------------------------

HWY_INLINE void copy_row(const float* HWY_RESTRICT from, int64_t n, float* HWY_RESTRICT to) {
  const FloatTag d;
  for_each_vector(d, n,
                  [&](int64_t i, auto io) HWY_ATTR { io.Store(io.Load(d, from + i), d, to + i); });
}

// Rows of one head are a few cache lines each and far apart: the hardware prefetcher misses them.
HWY_INLINE void prefetch_rows(const float* from, int64_t stride, int64_t rows, int64_t n) {
  constexpr int64_t kLine = 16;  // floats
  for (int64_t r = 0; r < rows; ++r, from += stride) {
    for (int64_t i = 0; i < n; i += kLine) hwy::Prefetch(from + i);
  }
}

// K and V as forward reads them.
struct Source {
  const Problem& p;
  const float* keys = nullptr;    // in the layout of the KV cache, from key 0; null: in the cache
  const float* values = nullptr;  // of key 0
  int64_t value_stride = 0;
};

// Where the blocks of one tile of keys are.
struct TileSource {
  const float* keys[kTileBlocks];
  const float* values[kTileBlocks];

  TileSource(const Source& from, const ScoreTile& tile) {
    const Problem& p = from.p;
    for (int64_t c = tile.column; c < tile.end(); c += kKvBlock) {
      const int64_t key = tile.key + c, block = c / kKvBlock;
      if (p.table) {
        keys[block] = p.a.blocks->keys(*p.table, key, p.kv_head);
        values[block] = p.a.blocks->values(*p.table, key, p.kv_head);
      } else {
        keys[block] = from.keys + key * p.a.head_dim;
        values[block] = from.values + key * from.value_stride;
      }
    }
  }
};

// A block of keys, transposed: a vector holds consecutive keys of one coordinate. Columns beyond
// `rows` are zero.
HWY_INLINE void pack_block(const float* from, int64_t stride, int64_t rows, int64_t head_dim,
                           float* to) {
  for (int64_t r = 0; r < kKvBlock; r += lanes()) {
    const int64_t some = std::clamp<int64_t>(rows - r, 0, lanes());
    for_each_column({from + r * stride, stride, some, head_dim, false},
                    [&](int64_t l, FloatVec column)
                        HWY_ATTR { hn::StoreU(column, FloatTag(), to + l * kKvBlock + r); });
  }
}

// Packs rows of keys into blocks. Values are copied if several tiles of queries read them: with the
// stride of a row of all heads, every row would map to the same few sets of the CPU cache.
Source pack_rows(const Problem& p, const Problem::Span& span, bool copies, const Workspace& work) {
  const Attention& a = p.a;
  for (int64_t key = span.begin / kKvBlock * kKvBlock; key < span.end; key += kKvBlock) {
    const float *k = p.k + key * a.k_stride, *v = p.v + key * a.v_stride;
    const int64_t rows = std::min(kKvBlock, span.end - key);
    const int64_t next = std::clamp<int64_t>(span.end - key - kKvBlock, 0, kKvBlock);
    prefetch_rows(k + kKvBlock * a.k_stride, a.k_stride, next, a.head_dim);
    prefetch_rows(v + kKvBlock * a.v_stride, a.v_stride, next, a.head_dim);
    pack_block(k, a.k_stride, rows, a.head_dim, work.keys + key * a.head_dim);
    if (!copies) continue;
    for (int64_t r = 0; r < rows; ++r) {
      copy_row(v + r * a.v_stride, a.head_dim, work.values + (key + r) * a.head_dim);
    }
  }
  if (!copies) return {p, work.keys, p.v, a.v_stride};
  return {p, work.keys, work.values, a.head_dim};
}

// ---- softmax ------------------------------------------------------------------------------------

// One row of forward's tile of queries, and its running softmax.
struct ForwardRow {
  int head;
  int64_t query;
  Problem::Span seen;
  // Near the maximum of the scores so far, in base 2: terms are 2^(score - reference).
  float reference;
};

// Columns of a tile, in steps of kColumnStep; none: begin >= end.
struct Columns {
  int64_t begin, end;
};

// The visible columns of a row in a tile, rounded outward to whole column steps.
HWY_INLINE Columns seen_columns(const ScoreTile& tile, const ForwardRow& row) {
  if (tile.p().a.global_keys) return {tile.column, tile.end()};
  const int64_t begin = std::max(row.seen.begin - tile.key, tile.column);
  const int64_t end = std::min(row.seen.end - tile.key, tile.end());
  if (begin >= end) return {tile.end(), tile.column};
  return {begin / kColumnStep * kColumnStep, (end + kColumnStep - 1) / kColumnStep * kColumnStep};
}

// Sets scores of masked columns to minus infinity.
HWY_INLINE void mask_scores(const ScoreTile& tile, const ForwardRow& row, const Columns& columns,
                            float* scores) {
  const FloatTag d;
  const int64_t begin = row.seen.begin - tile.key, end = row.seen.end - tile.key;
  if (begin <= columns.begin && end >= columns.end) return;
  const RowMask mask(tile, row.query);
  const auto apply = [&](int64_t from, int64_t to) HWY_ATTR {
    for (int64_t c = from; c < to; c += lanes()) {
      hn::StoreU(mask.apply(hn::LoadU(d, scores + c), c), d, scores + c);
    }
  };
  if (tile.p().a.global_keys) return apply(columns.begin, columns.end);
  apply(columns.begin, std::min(begin, columns.end));
  apply(std::max(columns.begin, end / lanes() * lanes()), columns.end);
}

// The reference starts as the maximum of the first tile and is updated only if a score exceeds it by
// this power of two, so that earlier sums seldom have to be rescaled.
constexpr float kSlack = 8;

// Updates the reference of a row whose largest score in this tile is `top`. Returns the factor for
// the sums so far.
HWY_INLINE float move_reference(float top, ForwardRow& row) {
  if (top <= row.reference + kSlack) return 1;  // NaN does not return here
  const float shrink = row.reference == -kInfinity ? 1 : std::exp2(row.reference - top);
  row.reference = top;
  return shrink;
}

// Some rows and their running softmax.
struct RunningRows {
  float* scores;     // [rows, kKeyTile]
  float* lane_sums;  // [rows, kColumnStep]
  ForwardRow* rows;
  float* shrink;  // [rows]: the factor for earlier sums
};

// Rows that are interleaved: a single row would wait for its maximum.
constexpr int kRowsTogether = 3;

// Replaces the scores of kRows rows by 2^(factor · score - reference), where `factor` converts to base
// 2, and adds these to the sums of each lane.
template <int kRows>
HWY_INLINE void online_softmax(const Columns& columns, float factor, const RunningRows& running) {
  const FloatTag d;
  float* HWY_RESTRICT scores = running.scores;
  FloatVec max[kRows], reference[kRows], sum[kRows];
  for (int r = 0; r < kRows; ++r) max[r] = hn::LoadU(d, scores + r * kKeyTile + columns.begin);
  for (int64_t c = columns.begin + lanes(); c < columns.end; c += lanes()) {
    for (int r = 0; r < kRows; ++r) {
      max[r] = hn::Max(max[r], hn::LoadU(d, scores + r * kKeyTile + c));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    ForwardRow& row = running.rows[r];
    running.shrink[r] = move_reference(hn::GetLane(hn::MaxOfLanes(d, max[r])) * factor, row);
    // A row that has seen no key may use any reference: 2^-infinity is 0.
    reference[r] = hn::Set(d, row.reference == -kInfinity ? 0.0f : row.reference);
    sum[r] = hn::Zero(d);
  }
  const FloatVec factors = hn::Set(d, factor);
  for (int64_t c = columns.begin; c < columns.end; c += lanes()) {
    for (int r = 0; r < kRows; ++r) {
      float* HWY_RESTRICT at = scores + r * kKeyTile + c;
      // Not fused: rounded like the reference, so that the largest exponent is exactly 0.
      const FloatVec scaled = hn::Mul(hn::LoadU(d, at), factors);
      const FloatVec e = Exp2(d, hn::Sub(scaled, reference[r]));
      sum[r] = hn::Add(sum[r], e);
      hn::StoreU(e, d, at);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float* HWY_RESTRICT sums = running.lane_sums + r * kColumnStep;
    hn::StoreU(hn::MulAdd(hn::LoadU(d, sums), hn::Set(d, running.shrink[r]), sum[r]), d, sums);
  }
}

// ---- a tile of queries --------------------------------------------------------------------------

// Applies dropout to the probabilities of a row.
void apply_dropout(const ScoreTile& tile, const ForwardRow& row, const Columns& columns,
                   float* factors, float* scores) {
  const FloatTag d;
  dropout_factors(tile.p().a.dropout, tile.dropout_group(row.head, row.query), factors,
                  columns.end);
  for (int64_t c = columns.begin; c < columns.end; c += lanes()) {
    hn::StoreU(hn::Mul(hn::LoadU(d, scores + c), hn::LoadU(d, factors + c)), d, scores + c);
  }
}

void scale_row(float factor, int64_t n, const float* from, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = factor * from[i];
}

// Rows of a tile of queries that are computed together, over the same columns.
constexpr int64_t kBlockRows = kAttentionTileRows;
constexpr int64_t kRowBlocks = (kQueryTile + kBlockRows - 1) / kBlockRows;

// Forward of one tile of queries.
class ForwardTile {
 public:
  ForwardTile(const QueryTile& q, const Source& source, const Workspace& work)
      : q_(q), a_(q.p.a), source_(source), work_(work), rows_(q.rows()), scoring_(a_) {
    for (int64_t i = 0, row = 0; i < q.heads; ++i) {
      const float* from = q.q() + i * a_.head_dim;
      for (int64_t r = 0; r < q.queries; ++r, ++row, from += a_.q_stride) {
        rows_of_[row] = {q.head + static_cast<int>(i), q.query + r, q.p.visible(q.query + r),
                         -kInfinity};
        copy_row(from, a_.head_dim, work.queries + row * a_.head_dim);
      }
    }
    // A positive scale keeps the order of scores, so it is fused into the softmax.
    plain_ = !a_.bias && !scoring_.capped && a_.scale > 0;
    factor_ = plain_ ? a_.scale * kLog2E : kLog2E;
  }

  void run(const AttentionOutput& output) {
    // Prefetch the output.
    for (int64_t i = 0; i < q_.heads; ++i) {
      prefetch_rows(output.out + q_.row() * output.out_stride + q_.column() + i * a_.head_dim,
                    output.out_stride, q_.queries, a_.head_dim);
    }
    std::fill_n(work_.sums, rows_ * a_.head_dim, 0.0f);
    std::fill_n(work_.lane_sums, rows_ * kColumnStep, 0.0f);
    for_each_key_tile(q_, [&](const ScoreTile& tile) { add(tile); });
    for (int64_t r = 0; r < rows_; ++r) write(r, output);
  }

  // The probabilities for a given log-sum-exp, [heads, queries, keys] of the sequence.
  void write_probabilities(const float* log_sum_exp, float* to) {
    for (int64_t r = 0; r < rows_; ++r) std::fill_n(probabilities_of(r, to), q_.p.keys, 0.0f);
    for_each_key_tile(q_, [&](const ScoreTile& tile) {
      find_columns(tile);
      scores(TileSource(source_, tile));
      for (int64_t r = 0; r < rows_; ++r) {
        const ForwardRow& row = rows_of_[r];
        const float lse = log_sum_exp[(q_.p.first_query + row.query) * a_.heads + row.head];
        const Columns columns = seen_columns(tile, row);
        if (columns.begin >= columns.end) continue;
        float* values = work_.scores + r * kKeyTile;
        probabilities_row(tile, row, columns, lse, values);
        const int64_t end = std::min(columns.end, tile.column + tile.keys);
        std::copy(values + columns.begin, values + end,
                  probabilities_of(r, to) + tile.key + columns.begin);
      }
    });
  }

 private:
  float* probabilities_of(int64_t r, float* to) const {
    return to + (int64_t{rows_of_[r].head} * q_.p.queries + rows_of_[r].query) * q_.p.keys;
  }

  int64_t blocks() const { return (rows_ + kBlockRows - 1) / kBlockRows; }
  int64_t rows_in(int64_t block) const { return std::min(kBlockRows, rows_ - block * kBlockRows); }

  // The columns of a tile that any row of a block sees.
  void find_columns(const ScoreTile& tile) {
    for (int64_t b = 0; b < blocks(); ++b) {
      Columns& columns = columns_[b] = {tile.end(), tile.column};
      for (int64_t r = b * kBlockRows; r < b * kBlockRows + rows_in(b); ++r) {
        const Columns row = seen_columns(tile, rows_of_[r]);
        columns = {std::min(columns.begin, row.begin), std::max(columns.end, row.end)};
      }
    }
  }

  // scores [rows, columns] = Q Kᵀ, unscaled, for all rows and one panel of keys at a time.
  void scores(const TileSource& from) {
    const ScoreMatmul product{work_.queries, a_.head_dim, from.keys, work_.scores};
    const int64_t panel = rows_ == 1 ? kKeyTile : score_panel();
    for (int64_t column = 0; column < kKeyTile; column += panel) {
      for (int64_t b = 0; b < blocks(); ++b) {
        const int64_t begin = std::max(columns_[b].begin, column);
        const int64_t end = std::min(columns_[b].end, column + panel);
        if (begin < end) score_matmul(product, b * kBlockRows, rows_in(b), begin, end);
      }
    }
  }

  RunningRows running(int64_t row, float* shrink) {
    return {work_.scores + row * kKeyTile, work_.lane_sums + row * kColumnStep, rows_of_ + row,
            shrink};
  }

  // Bias, mask, online softmax and dropout for a block of rows.
  void softmax_tile(const ScoreTile& tile, int64_t first, int64_t rows, const Columns& columns) {
    const FloatTag d;
    float* scores = work_.scores + first * kKeyTile;
    for (int64_t r = 0; r < rows; ++r) {
      const ForwardRow& row = rows_of_[first + r];
      float* values = scores + r * kKeyTile;
      if (!plain_) {
        const float* bias = tile.bias_row(a_.bias, row.head, row.query);
        for (int64_t c = columns.begin; c < columns.end; c += lanes()) {
          FloatVec s = scoring_(hn::LoadU(d, values + c));
          if (bias) s = hn::Add(s, hn::LoadU(d, bias + c));
          hn::StoreU(s, d, values + c);
        }
      }
      mask_scores(tile, row, columns, values);
    }
    float shrink[kBlockRows];
    int64_t r = 0;
    for (; r + kRowsTogether <= rows; r += kRowsTogether) {
      online_softmax<kRowsTogether>(columns, factor_, running(first + r, shrink + r));
    }
    for (; r < rows; ++r) online_softmax<1>(columns, factor_, running(first + r, shrink + r));
    for (r = 0; r < rows; ++r) {
      float* sums = work_.sums + (first + r) * a_.head_dim;
      if (shrink[r] != 1) scale_row(shrink[r], a_.head_dim, sums, sums);
      if (a_.dropout.p > 0) {
        apply_dropout(tile, rows_of_[first + r], columns, work_.factors, scores + r * kKeyTile);
      }
    }
  }

  // Adds a tile of keys to the sums.
  void add(const ScoreTile& tile) {
    const TileSource from(source_, tile);
    find_columns(tile);
    scores(from);
    const ValueMatmul product{work_.scores, from.values,
                              q_.p.table ? a_.head_dim : source_.value_stride, a_.head_dim,
                              work_.sums};
    const int64_t keys_end = tile.column + tile.keys;
    for (int64_t b = 0; b < blocks(); ++b) {
      const Columns& columns = columns_[b];
      if (columns.begin >= columns.end) continue;
      softmax_tile(tile, b * kBlockRows, rows_in(b), columns);
    }
    for (int64_t b = 0; b < blocks(); ++b) {
      const Columns& columns = columns_[b];
      if (columns.begin >= columns.end) continue;
      value_matmul(product, b * kBlockRows, rows_in(b), columns.begin,
                   std::min(columns.end, keys_end));
    }
  }

  void write(int64_t r, const AttentionOutput& output) const {
    const FloatTag d;
    const ForwardRow& row = rows_of_[r];
    const int64_t at = q_.p.first_query + row.query;
    const float sum =
        hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, work_.lane_sums + r * kColumnStep)));
    // A query that sees no key gets zeros; +inf makes backward's exp(score - lse) zero.
    const bool empty = sum == 0;
    scale_row(empty ? 0.0f : 1 / sum, a_.head_dim, work_.sums + r * a_.head_dim,
              output.out + at * output.out_stride + int64_t{row.head} * a_.head_dim);
    if (output.log_sum_exp) {
      output.log_sum_exp[at * a_.heads + row.head] =
          empty ? kInfinity : row.reference * kLn2 + std::log(sum);
    }
  }

  // Converts raw scores to probabilities, exp(score - lse), in place.
  void probabilities_row(const ScoreTile& tile, const ForwardRow& row, const Columns& columns,
                         float lse, float* scores) const {
    const FloatTag d;
    const RowMask mask(tile, row.query);
    const float* bias = tile.bias_row(a_.bias, row.head, row.query);
    const FloatVec shift = hn::Set(d, lse);
    for (int64_t c = columns.begin; c < columns.end; c += lanes()) {
      FloatVec s = scoring_(hn::LoadU(d, scores + c));
      if (bias) s = hn::Add(s, hn::LoadU(d, bias + c));
      hn::StoreU(Exp(d, hn::Sub(mask.apply(s, c), shift)), d, scores + c);
    }
  }

  const QueryTile& q_;
  const Attention& a_;
  const Source& source_;
  const Workspace& work_;
  int64_t rows_;
  Scoring scoring_;
  bool plain_;
  float factor_;
  ForwardRow rows_of_[kQueryTile];
  Columns columns_[kRowBlocks];
};

void forward(const Problem& p, const QueryRange& range, const AttentionOutput& output,
             int64_t sequence, const Workspace& work) {
  const int group = p.a.heads / p.a.kv_heads;
  const int64_t queries = range.end - range.begin;
  const Source source =
      p.table ? Source{p}
              : pack_rows(p, reached_keys(p, range), queries * group > kQueryTile, work);
  // Heads that share a KV head are computed together if they have few queries each.
  const int heads = static_cast<int>(std::clamp<int64_t>(kQueryTile / queries, 1, group));
  for (int head = 0; head < group; head += heads) {
    for (int64_t query = range.begin; query < range.end; query += kQueryTile) {
      const QueryTile q{p, p.kv_head * group + head, query, std::min(kQueryTile, range.end - query),
                        std::min(heads, group - head)};
      ForwardTile tile(q, source, work);
      tile.run(output);
      if (output.probabilities) {
        tile.write_probabilities(output.log_sum_exp,
                                 output.probabilities + output.probability_offsets[sequence]);
      }
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

HWY_EXPORT(forward);

}  // namespace

void forward_queries(const Problem& p, const QueryRange& range, const AttentionOutput& output,
                     int64_t sequence, const Workspace& work) {
  HWY_DYNAMIC_DISPATCH(forward)(p, range, output, sequence, work);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
