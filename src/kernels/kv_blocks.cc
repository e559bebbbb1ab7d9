#include "kernels/kv_blocks.h"

#include <algorithm>

#include "base/check.h"

namespace heed::kernels {
namespace {

// Rows a thread takes at least: below this, waking one costs more than the copy.
constexpr int64_t kRowGrain = 32;

void write_row(const KvBlocks& b, const KvTable& table, int64_t position, const float* k,
               const float* v) {
  const int64_t slot = position % kKvBlock;
  for (int64_t head = 0; head < b.kv_heads; ++head, k += b.head_dim, v += b.head_dim) {
    float* keys = b.keys(table, position, head) + slot;
    for (int64_t d = 0; d < b.head_dim; ++d) keys[d * kKvBlock] = k[d];
    std::copy_n(v, b.head_dim, b.values(table, position, head) + slot * b.head_dim);
  }
}

}  // namespace

void write_kv(ThreadPool& pool, const KvBlocks& blocks, const KvRows& rows) {
  const int32_t* end_offset = rows.offsets + blocks.sequences + 1;
  pool.parallel_for(rows.offsets[blocks.sequences], kRowGrain, [&](int64_t begin, int64_t end) {
    // The sequence that row `begin` belongs to: the last that starts at or before it.
    int64_t s = std::upper_bound(rows.offsets, end_offset, begin) - rows.offsets - 1;
    for (int64_t row = begin; row < end; ++row) {
      while (rows.offsets[s + 1] <= row) ++s;
      const KvTable& table = blocks.tables[s];
      const int64_t position = table.keys - (rows.offsets[s + 1] - row);
      HEED_DCHECK(position >= table.first_block * kKvBlock, "a row before the sequence's blocks");
      write_row(blocks, table, position, rows.k + row * rows.k_stride,
                rows.v + row * rows.v_stride);
    }
  });
}

}  // namespace heed::kernels
