// How attention is split: sequences and heads, tiles of queries, and the tiles of keys that each sees.
// Used by attention.cc and attention_forward.cc alone; nothing here depends on the instruction set.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention/attention.h"

namespace heed::kernels {

// Queries × keys worked on at a time. A tile of scores (24 KiB) and the running sums stay in L1;
// 48 is a multiple of the register tile's 6 rows, 128 is one group of the dropout generator.
inline constexpr int64_t kQueryTile = 48;
inline constexpr int64_t kKeyTile = 128;
static_assert(kKeyTile == kDropoutGroup);

// Columns of a score tile are computed in steps of the widest vector.
inline constexpr int64_t kColumnStep = 16;
static_assert(kColumnStep <= kBiasPadding && kQueryTile + kColumnStep <= kBiasReach);
static_assert(kKvBlock == kColumnStep, "a window's first block holds all that is computed of it");
inline constexpr int64_t kTileBlocks = kKeyTile / kKvBlock;

// Probability rows draw from streams of their own: room for 2^20 key tiles each.
inline constexpr int kDropoutRowShift = 20;

inline int64_t key_tiles(int64_t keys) { return (keys + kKeyTile - 1) / kKeyTile; }

// Cuts one thread's scratch into buffers that start on cache lines.
struct ScratchCursor {
  float* scratch;  // null: only adds up the sizes
  int64_t floats = 0;

  float* take(int64_t count) {
    float* p = scratch ? scratch + floats : nullptr;
    floats += (count + 15) / 16 * 16;
    return p;
  }
};

// One thread's scratch, cut into its buffers.
struct Workspace {
  // For sequences of up to `most_keys` keys that are packed. scratch = null only adds up the sizes.
  Workspace(float* scratch, const Attention& a, int64_t most_keys, bool backward) {
    ScratchCursor cursor{scratch};
    const int64_t packed = key_tiles(most_keys) * kKeyTile * a.head_dim;
    keys = cursor.take(packed);
    values = cursor.take(packed);
    scores = cursor.take(kQueryTile * kKeyTile);
    factors = cursor.take(kKeyTile);
    if (backward) {
      d_scores = cursor.take(kQueryTile * kKeyTile);
    } else {
      queries = cursor.take(kQueryTile * a.head_dim);
      sums = cursor.take(kQueryTile * a.head_dim);
      lane_sums = cursor.take(kQueryTile * kColumnStep);
    }
    floats = cursor.floats;
  }

  // K transposed: backward's [key tiles, head_dim, kKeyTile], forward's as a cache's blocks are.
  float* keys = nullptr;
  float* values = nullptr;  // V: backward's likewise; forward's [keys, head_dim], close together
  float* scores = nullptr;  // [kQueryTile, kKeyTile]
  float* d_scores = nullptr;
  float* queries = nullptr;  // [kQueryTile, head_dim]: Q, close together
  float* sums = nullptr;     // [kQueryTile, head_dim]: P V so far
  float* lane_sums =
      nullptr;               // [kQueryTile, kColumnStep]: of P so far, each lane of a vector apart
  float* factors = nullptr;  // [kKeyTile]: dropout of one row
  int64_t floats = 0;        // all of them together
};

// One sequence and one KV head.
struct Problem {
  Problem(const Attention& attention, int64_t sequence, int head)
      : a(attention),
        first_query(a.query_offsets[sequence]),
        queries(a.queries(sequence)),
        first_key(a.blocks ? 0 : a.key_offsets[sequence]),
        keys(a.keys(sequence)),
        first_position(a.first_position(sequence)),
        kv_head(head),
        table(a.blocks ? a.blocks->tables + sequence : nullptr) {
    if (table) return;
    k = a.k + first_key * a.k_stride + int64_t{head} * a.head_dim;
    v = a.v + first_key * a.v_stride + int64_t{head} * a.head_dim;
  }

  bool is_global_query(int64_t query) const {
    return a.global_queries && a.global_queries[first_query + query];
  }

  // The keys [begin, end) that a query sees by the window alone; every key for a global query, but
  // for those a causal mask hides.
  struct Span {
    int64_t begin, end;
  };
  Span visible(int64_t query) const {
    if (a.before == kUnlimited && a.after == kUnlimited) return {0, keys};
    const int64_t position = first_position + query;
    const bool global = is_global_query(query);
    const int64_t before = global ? kUnlimited : a.before;
    const int64_t after = global && a.after > 0 ? kUnlimited : a.after;
    return {std::clamp<int64_t>(position - before, 0, keys),
            std::clamp<int64_t>(position + after + 1, 0, keys)};
  }

  const Attention& a;
  int64_t first_query, queries, first_key, keys, first_position;
  int kv_head;
  const KvTable* table;      // of K and V in a KV cache …
  const float* k = nullptr;  // … or rows
  const float* v = nullptr;
};

// Some queries of one head, or of several that share their keys. Row i · queries + r is query r of
// head i.
struct QueryTile {
  const Problem& p;
  int head;                // the first
  int64_t query, queries;  // the first, within its sequence, and how many
  int heads = 1;

  int64_t rows() const { return heads * queries; }
  int64_t row() const { return p.first_query + query; }  // of the first query, in the batch
  int64_t column() const { return int64_t{head} * p.a.head_dim; }
  const float* q() const { return p.a.q + row() * p.a.q_stride + column(); }
};

// A tile of queries against a tile of keys.
struct ScoreTile {
  const QueryTile& q;
  int64_t key;              // the tile's first key
  int64_t column, columns;  // the columns of the tile that are computed, in steps of kColumnStep
  int64_t keys;             // of these columns, how many are keys that exist

  const Problem& p() const { return q.p; }
  int64_t first_key() const { return key + column; }
  int64_t end() const { return column + columns; }

  // Where the relative bias (or its gradient) of a query against the tile's columns is; null
  // without.
  template <class Float>
  Float* bias_row(Float* bias, int head, int64_t query) const {
    if (!bias) return nullptr;
    const int64_t position = p().first_position + query;
    return bias + head * p().a.bias_stride + p().a.bias_center + key - position;
  }

  // The group of the dropout stream that a query draws from.
  uint64_t dropout_group(int head, int64_t query) const {
    const auto stream = static_cast<uint64_t>((p().first_query + query) * p().a.heads + head);
    return (stream << kDropoutRowShift) + static_cast<uint64_t>(key / kKeyTile);
  }
};

// Calls body(ScoreTile) for every tile of keys that any of the queries sees, in key order.
template <class Body>
void for_each_key_tile(const QueryTile& q, const Body& body) {
  const Problem& p = q.p;
  const int64_t last_query = q.query + q.queries - 1;
  // Without global queries the windows move with the query, so the first and the last decide.
  Problem::Span seen = {p.visible(q.query).begin, p.visible(last_query).end};
  for (int64_t i = q.query; p.a.global_queries && i <= last_query; ++i) {
    const Problem::Span row = p.visible(i);
    seen = {std::min(seen.begin, row.begin), std::max(seen.end, row.end)};
  }
  const bool by_key = p.a.global_keys != nullptr;  // then any tile may hold a key that is seen
  const int64_t causal_end =
      p.a.after > 0 ? p.keys : std::clamp<int64_t>(p.first_position + last_query + 1, 0, p.keys);
  const int64_t first = by_key ? 0 : seen.begin;
  const int64_t last = by_key ? causal_end : seen.end;
  for (int64_t key = first / kKeyTile * kKeyTile; key < last; key += kKeyTile) {
    int64_t begin = std::max(seen.begin, key), end = std::min({seen.end, key + kKeyTile, p.keys});
    if (by_key) {
      const int64_t tile_end = std::min(key + kKeyTile, causal_end);
      const uint8_t* flags = p.a.global_keys + p.first_key;
      for (int64_t j = key; j < tile_end; ++j) {
        if (flags[j]) begin = begin < end ? std::min(begin, j) : j, end = std::max(end, j + 1);
      }
    }
    if (begin >= end) continue;
    const int64_t column = (begin - key) / kColumnStep * kColumnStep;
    const int64_t columns = (end - key - column + kColumnStep - 1) / kColumnStep * kColumnStep;
    body(ScoreTile{q, key, column, columns, std::min(columns, p.keys - key - column)});
  }
}

// The cost of a sequence, for an even split; in pairs of query and key.
inline int64_t cost(const Attention& a, int64_t s) {
  const int64_t keys = a.keys(s);
  const int64_t window = std::min(
      keys, std::min(a.before, kUnlimited / 2) + std::min(a.after, kUnlimited / 2) + kKeyTile);
  return a.queries(s) * window + 16 * keys + 16;
}

// Some queries of a sequence: [begin, end).
struct QueryRange {
  int64_t begin, end;

  bool operator==(const QueryRange&) const = default;
};

// The range of visible keys of these queries, rounded outward to whole column steps, as
// ScoreTile::keys counts them.
inline Problem::Span reached_keys(const Problem& p, const QueryRange& range) {
  if (p.a.global_queries || p.a.global_keys) return {0, p.keys};
  const int64_t end = p.visible(range.end - 1).end;
  return {p.visible(range.begin).begin / kColumnStep * kColumnStep,
          std::min((end + kColumnStep - 1) / kColumnStep * kColumnStep, p.keys)};
}

// The cost of a tile of queries.
inline int64_t tile_cost(const Problem& p, const QueryRange& range) {
  // Before the first tile, mostly.
  const int64_t packing = range.begin == 0 ? 16 * (p.table ? 0 : p.keys) + 16 : 0;
  if (p.a.global_queries) return packing + (range.end - range.begin) * p.keys;
  const int64_t seen = p.visible(range.end - 1).end - p.visible(range.begin).begin;
  return packing + (range.end - range.begin) * (std::max<int64_t>(seen, 0) + kColumnStep);
}

// For forward, whose rows do not depend on each other: calls body(sequence, kv_head, range, share)
// so that each query of each key/value head is in one range, and about the same cost goes to each
// share of the pool. Ranges are consecutive, as keys are packed again for each range; a single long
// sequence is split among all threads.
template <class Body>
void for_each_query_range(ThreadPool& pool, const Attention& a, const Body& body) {
  const auto tiles_of = [](const Problem& p, const auto& each) {
    for (int64_t query = 0; query < p.queries; query += kQueryTile) {
      const QueryRange tile{query, std::min(query + kQueryTile, p.queries)};
      each(tile, tile_cost(p, tile));
    }
  };
  const int64_t shares = pool.threads();
  int64_t total = 0;
  for (int64_t s = 0; s < a.sequences; ++s) {
    tiles_of(Problem(a, s, 0), [&](QueryRange, int64_t cost) { total += cost * a.kv_heads; });
  }
  pool.parallel_for(shares, 1, [&](int64_t begin, int64_t end) {
    int64_t done = 0;  // cost of everything before this tile
    for (int64_t s = 0; s < a.sequences; ++s) {
      for (int head = 0; head < a.kv_heads; ++head) {
        const Problem p(a, s, head);
        QueryRange range{0, 0};
        int64_t range_share = -1;
        const auto finish = [&] {
          if (range_share >= begin && range_share < end) body(s, head, range, range_share);
        };
        tiles_of(p, [&](QueryRange tile, int64_t cost) {
          const int64_t share = std::min(shares - 1, done * shares / total);
          if (share != range_share) {
            finish();
            range = tile, range_share = share;
          }
          range.end = tile.end;
          done += cost;
        });
        finish();
      }
    }
  });
}

// For backward, which sums over queries: calls body(sequence, kv_head, share) for all of them,
// about the same cost to each share of the pool. Consecutive pairs stay on one thread. When
// `whole_heads`, all sequences of a head do.
template <class Body>
void for_each_problem(ThreadPool& pool, const Attention& a, bool whole_heads, const Body& body) {
  const int64_t shares = pool.threads();
  if (whole_heads) {
    pool.parallel_for(shares, 1, [&](int64_t begin, int64_t end) {
      for (int64_t share = begin; share < end; ++share) {
        for (int64_t head = a.kv_heads * share / shares; head < a.kv_heads * (share + 1) / shares;
             ++head) {
          for (int64_t s = 0; s < a.sequences; ++s) body(s, static_cast<int>(head), share);
        }
      }
    });
    return;
  }
  int64_t total = 0;
  for (int64_t s = 0; s < a.sequences; ++s) total += cost(a, s) * a.kv_heads;
  pool.parallel_for(shares, 1, [&](int64_t begin, int64_t end) {
    int64_t done = 0;  // cost of everything before this pair
    for (int64_t s = 0; s < a.sequences; ++s) {
      const int64_t each = cost(a, s);
      for (int head = 0; head < a.kv_heads; ++head, done += each) {
        const int64_t share = std::min(shares - 1, done * shares / total);
        if (share >= begin && share < end) body(s, head, share);
      }
    }
  });
}

// attention_forward() for some queries of a sequence, in attention_forward.cc.
void forward_queries(const Problem& p, const QueryRange& range, const AttentionOutput& output,
                     int64_t sequence, const Workspace& work);

}  // namespace heed::kernels
