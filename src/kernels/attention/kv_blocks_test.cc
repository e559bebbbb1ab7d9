#include "kernels/attention/kv_blocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace heed::kernels {
namespace {

// Every number says where it comes from: row, and column of keys (positive) or values (negative).
float key_number(int64_t row, int64_t column) { return static_cast<float>(row * 1000 + column); }

TEST(KvBlocks, RowsAreStoredAtTheLastPositions) {
  constexpr int kKvHeads = 2, kHeadDim = 65;  // enough for several threads, also within a head
  constexpr int64_t kWidth = kKvHeads * kHeadDim, kRows = 24, kStride = kWidth + 2;
  std::vector<float> k(kRows * kStride), v(kRows * kStride);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kWidth; ++c) {
      k[static_cast<size_t>(r * kStride + c)] = key_number(r, c);
      v[static_cast<size_t>(r * kStride + c)] = -key_number(r, c);
    }
  }
  // Three sequences: 20 new rows that end at position 37 and whose first block is the second; none;
  // and 4 rows from position 0.
  const std::vector<int32_t> first{5, 2}, third{0}, offsets{0, 20, 20, 24};
  const KvTable tables[] = {{first.data(), 1, 38}, {nullptr, 0, 0}, {third.data(), 0, 4}};
  const int64_t floats = kv_block_floats(kKvHeads, kHeadDim), stride = 2 * floats;
  for (const int threads : {1, 2, 3, 4}) {
    ThreadPool pool(threads);
    std::vector<float> data(static_cast<size_t>(6 * stride), 0.5f);
    const KvBlocks blocks{kKvHeads, kHeadDim, data.data(), stride, tables, 3};
    write_kv(pool, blocks,
             {.offsets = offsets.data(),
              .k = k.data(),
              .v = v.data(),
              .k_stride = kStride,
              .v_stride = kStride});
    int64_t written = 0;
    for (const float x : data) written += x != 0.5f;
    EXPECT_EQ(written, 2 * kRows * kWidth);
    for (int64_t row = 0; row < kRows; ++row) {
      const KvTable& table = row < 20 ? tables[0] : tables[2];
      const int64_t position = row < 20 ? 18 + row : row - 20, slot = position % kKvBlock;
      for (int64_t head = 0; head < kKvHeads; ++head) {
        for (int64_t d = 0; d < kHeadDim; ++d) {
          const float expected = key_number(row, head * kHeadDim + d);
          EXPECT_EQ(blocks.keys(table, position, head)[d * kKvBlock + slot], expected);
          EXPECT_EQ(blocks.values(table, position, head)[slot * kHeadDim + d], -expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace heed::kernels
