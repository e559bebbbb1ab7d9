#include "kernels/attention/kv_blocks.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/matmul/work_split.h"

namespace heed::kernels {
namespace {

// The grain, in floats: below this, waking a thread costs more than the copy.
constexpr int64_t kFloatGrain = 512;

// Some rows of one sequence, and their positions.
struct Run {
  const KvTable& table;
  int64_t row, position;  // of the first
  int64_t rows;
};

// Stores one head's rows of one block.
void write_block(const KvBlocks& b, const KvRows& from, const Run& run, int64_t head) {
  const int64_t slot = run.position % kKvBlock;
  const float* k = from.k + run.row * from.k_stride + head * b.head_dim;
  const float* v = from.v + run.row * from.v_stride + head * b.head_dim;
  float* keys = b.keys(run.table, run.position, head) + slot;
  float* values = b.values(run.table, run.position, head) + slot * b.head_dim;
  for (int64_t d = 0; d < b.head_dim; ++d) {
    for (int64_t r = 0; r < run.rows; ++r) keys[d * kKvBlock + r] = k[r * from.k_stride + d];
  }
  for (int64_t r = 0; r < run.rows; ++r) {
    std::copy_n(v + r * from.v_stride, b.head_dim, values + r * b.head_dim);
  }
}

void write_head(const KvBlocks& b, const KvRows& from, Run run, int64_t head) {
  for (int64_t left = run.rows; left > 0; left -= run.rows) {
    run.rows = std::min(left, kKvBlock - run.position % kKvBlock);
    write_block(b, from, run, head);
    run.row += run.rows, run.position += run.rows;
  }
}

}  // namespace

// Work is split by sequences, then heads, then rows, as attention_forward() splits it: a core then
// finds in its cache the K and V that it has written.
void write_kv(ThreadPool& pool, const KvBlocks& blocks, const KvRows& rows) {
  const int64_t heads = blocks.kv_heads, all = rows.offsets[blocks.sequences] * heads;
  const int32_t* end_offset = rows.offsets + blocks.sequences + 1;
  pool.parallel_for(all, ceil_div(kFloatGrain, blocks.head_dim), [&](int64_t begin, int64_t end) {
    // The sequence that `begin` belongs to: the last that starts at or before it.
    int64_t s = std::upper_bound(rows.offsets, end_offset, begin / heads) - rows.offsets - 1;
    for (int64_t i = begin; i < end;) {
      while (rows.offsets[s + 1] * heads <= i) ++s;
      const int64_t first = rows.offsets[s], count = rows.offsets[s + 1] - first;
      const int64_t within = i - first * heads, head = within / count, row = within % count;
      const KvTable& table = blocks.tables[s];
      const Run run{.table = table,
                    .row = first + row,
                    .position = table.keys - count + row,
                    .rows = std::min(count - row, end - i)};
      HEED_DCHECK(run.position >= table.first_block * kKvBlock,
                  "write_kv: rows must be within the blocks of the sequence");
      write_head(blocks, rows, run, head);
      i += run.rows;
    }
  });
}

}  // namespace heed::kernels
