// Attention of few queries whose keys and values are in a cache's blocks (kernels/kv_blocks.h): the
// steps of decoding. Many queries, as a prompt has, copy them together first (attention.cc).
//
// The same arithmetic in the same order as over packed rows (attention.cc): each score is one chain
// over head_dim, each sum of values one chain over a tile of kKeyTile keys. Only where the numbers
// come from differs. All query heads of a key/value head are worked on together, a tile of keys at
// a time, so that grouped queries read the cache once.
#include <algorithm>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/attention_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_blocks.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "kernels/attention_rows-inl.h"
#include "kernels/tile-inl.h"

static_assert(heed::kernels::kKvBlock % heed::kernels::kColumnStep == 0 &&
                  heed::kernels::kKeyTile % heed::kernels::kKvBlock == 0,
              "a window's first block holds all columns of a tile from its first key on");

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace {

// Some queries of some heads that share their keys. Row i · queries + r is query r of head i.
struct GroupTile {
  const Problem& p;
  int head, heads;  // the first, and how many
  int64_t query, queries;

  int64_t rows() const { return heads * queries; }
  QueryTile of_head(int i) const { return {p, head + i, query, queries}; }
};

// Calls body(column, keys) for every block of a tile: its first column and how many keys it has.
template <class Body>
void for_each_block(const ScoreTile& tile, const Body& body) {
  for (int64_t at = 0; at < tile.keys; at += kKvBlock) {
    body(tile.column + at, std::min(kKvBlock, tile.keys - at));
  }
}

// scores [rows, columns] = Q Kᵀ, unscaled.
void block_scores(const GroupTile& g, const ScoreTile& tile, float* scores) {
  const Attention& a = g.p.a;
  const KvTable& table = *g.p.table;
  TileProduct product{.m = g.queries,
                      .n = kKvBlock,
                      .k = a.head_dim,
                      .a = nullptr,
                      .a_row = a.q_stride,
                      .a_col = 1,
                      .b = nullptr,
                      .b_row = kKvBlock,
                      .c = nullptr,
                      .c_row = kKeyTile,
                      .accumulate = false};
  int products = g.heads;
  if (g.queries == 1) {  // heads are rows too: one product of all of them
    product.m = g.heads, product.a_row = a.head_dim, products = 1;
  }
  for_each_block(tile, [&](int64_t column, int64_t) {
    product.b = a.blocks->keys(table, tile.key + column, g.p.kv_head);
    for (int i = 0; i < products; ++i) {
      product.a = g.of_head(i).q();
      product.c = scores + i * g.queries * kKeyTile + column;
      tile_product(product);
    }
  });
}

// sums [rows, head_dim] += P V.
void block_values(const GroupTile& g, const ScoreTile& tile, const BlockWorkspace& work) {
  const Attention& a = g.p.a;
  TileProduct product{.m = g.rows(),
                      .n = a.head_dim,
                      .k = 0,
                      .a = nullptr,
                      .a_row = kKeyTile,
                      .a_col = 1,
                      .b = nullptr,
                      .b_row = a.head_dim,
                      .c = work.tile_sums,
                      .c_row = a.head_dim,
                      .accumulate = false};
  for_each_block(tile, [&](int64_t column, int64_t keys) {
    product.k = keys;
    product.a = work.scores + column;
    product.b = a.blocks->values(*g.p.table, tile.key + column, g.p.kv_head);
    tile_product(product);
    product.resume = true;  // a tile of keys is one chain
  });
  const int64_t n = g.rows() * a.head_dim;
  for (int64_t i = 0; i < n; ++i) work.sums[i] += work.tile_sums[i];
}

void forward_tile(const GroupTile& g, const AttentionOutput& output, const BlockWorkspace& work) {
  const Attention& a = g.p.a;
  const Scoring scoring(a);
  RowState states[kQueryTile];
  std::fill_n(work.sums, g.rows() * a.head_dim, 0.0f);

  for_each_key_tile(g.of_head(0), [&](const ScoreTile& tile) {
    block_scores(g, tile, work.scores);
    for (int i = 0; i < g.heads; ++i) {
      const QueryTile q = g.of_head(i);
      const ScoreTile of_head{q, tile.key, tile.column, tile.columns, tile.keys};
      for (int64_t r = 0; r < g.queries; ++r) {
        const int64_t row = i * g.queries + r;
        const float shrink =
            online_softmax_row(of_head, r, scoring, work.scores + row * kKeyTile, states[row]);
        float* sums = work.sums + row * a.head_dim;
        if (shrink != 1) scale_row(shrink, a.head_dim, sums, sums);
      }
    }
    block_values(g, tile, work);
  });

  for (int i = 0; i < g.heads; ++i) {
    const QueryTile q = g.of_head(i);
    for (int64_t r = 0; r < g.queries; ++r) {
      const int64_t row = i * g.queries + r;
      const float sum = states[row].sum;  // 0: a query that sees no key gets zeros
      scale_row(sum == 0 ? 0.0f : 1 / sum, a.head_dim, work.sums + row * a.head_dim,
                output.out + (q.row() + r) * output.out_stride + q.column());
    }
  }
}

void forward_blocks(const Problem& p, const QueryRange& range, const AttentionOutput& output,
                    const BlockWorkspace& work) {
  const Attention& a = p.a;
  const int group = a.heads / a.kv_heads;
  const int most_heads = std::min<int>(group, kQueryTile);
  const int64_t most_queries = kQueryTile / most_heads;
  for (int head = 0; head < group; head += most_heads) {
    const int heads = std::min(most_heads, group - head);
    for (int64_t query = range.begin; query < range.end; query += most_queries) {
      const int64_t queries = std::min(most_queries, range.end - query);
      forward_tile({p, p.kv_head * group + head, heads, query, queries}, output, work);
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

HWY_EXPORT(forward_blocks);

}  // namespace

void forward_over_blocks(const Problem& p, const QueryRange& range, const AttentionOutput& output,
                         const BlockWorkspace& work) {
  HWY_DYNAMIC_DISPATCH(forward_blocks)(p, range, output, work);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
