// The KV cache as kernels see it: K and V in blocks of positions.
//
// A block holds kKvBlock positions of one layer, first K, then V:
//
//   K [kv_heads, head_dim, kKvBlock]   transposed: a vector holds one coordinate of consecutive
//                                      positions, as attention reads it
//   V [kv_heads, kKvBlock, head_dim]
//
// A sequence lists its blocks in a table. Several sequences may share blocks: beams, a common prefix,
// the source that all beams of a sentence attend to. Unwritten positions of a block are never read.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace heed::kernels {

// Small, because a sequence leaves half of its last block empty on average; not smaller, because
// attention works on 16 keys at a time.
inline constexpr int64_t kKvBlock = 16;

// The blocks of one sequence.
struct KvTable {
  // Positions [(first_block + i) · kKvBlock, … + kKvBlock) are in block blocks[i].
  const int32_t* blocks = nullptr;
  int64_t first_block = 0;  // earlier ones were freed: no window reaches them
  int64_t keys = 0;         // positions of the sequence, with those of the current batch
};

// One layer of a KV cache.
struct KvBlocks {
  int kv_heads = 0;
  int head_dim = 0;
  float* data = nullptr;            // this layer's part of block 0
  int64_t block_stride = 0;         // floats from a block to the next
  const KvTable* tables = nullptr;  // [sequences]
  int64_t sequences = 0;

  // K or V of one head in the block that holds `position`.
  float* keys(const KvTable& table, int64_t position, int64_t head) const {
    return block(table, position) + head * head_dim * kKvBlock;
  }
  float* values(const KvTable& table, int64_t position, int64_t head) const {
    return block(table, position) + (kv_heads + head) * head_dim * kKvBlock;
  }

 private:
  float* block(const KvTable& table, int64_t position) const {
    return data + table.blocks[position / kKvBlock - table.first_block] * block_stride;
  }
};

// Floats of one layer's block.
inline constexpr int64_t kv_block_floats(int64_t kv_heads, int64_t head_dim) {
  return 2 * kv_heads * head_dim * kKvBlock;
}

// Rows to store in the blocks: rows [offsets[s], offsets[s + 1]) are the last positions of sequence
// s.
struct KvRows {
  const int32_t* offsets = nullptr;  // [sequences + 1]
  const float* k = nullptr;          // [rows, kv_heads · head_dim], rows k_stride apart
  const float* v = nullptr;
  int64_t k_stride = 0, v_stride = 0;
};
void write_kv(ThreadPool& pool, const KvBlocks& blocks, const KvRows& rows);

}  // namespace heed::kernels
