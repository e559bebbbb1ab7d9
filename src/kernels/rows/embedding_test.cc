#include "kernels/rows/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/simd/each_target_testing.h"
#include "kernels/simd/kernel_testing.h"

namespace heed::kernels {
namespace {

const std::vector<int32_t> kIds = {3, 0, 9, 3, 3, 7, 0};
constexpr int64_t kTableRows = 10;

TEST(GatherRows, TakesScaledRows) {
  for_each_target([] {
    const int64_t rows = static_cast<int64_t>(kIds.size());
    for (const int64_t cols : kOddSizes) {
      Unaligned table(random_floats(kTableRows * cols, 1));
      const std::vector<float> before = random_floats(rows * cols, 2);
      for (const bool accumulate : {false, true}) {
        Unaligned y(before);
        gather_rows({.table = table.data(),
                     .ids = kIds.data(),
                     .scale = 1.5f,
                     .accumulate = accumulate,
                     .y = y.data(),
                     .rows = rows,
                     .cols = cols});
        for (int64_t i = 0; i < rows * cols; ++i) {
          const float taken = 1.5f * table.data()[kIds[i / cols] * cols + i % cols];
          const float expected = accumulate ? before[i] + taken : taken;
          ASSERT_NEAR(y.data()[i], expected, accumulate ? 1e-6f : 0.0f);
        }
      }
    }
  });
}

TEST(ScatterAddRows, AddsRowsThatRepeat) {
  for_each_target([] {
    const int64_t rows = static_cast<int64_t>(kIds.size());
    for (const int64_t cols : kOddSizes) {
      const int64_t stride = cols + 2, table_stride = cols + 5;
      // Blocks end with their last row, not with its stride.
      Unaligned dy(random_floats(rows * stride - 2, 1));
      const std::vector<float> before = random_floats(kTableRows * table_stride - 5, 2);
      std::vector<double> expected(before.begin(), before.end());
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t col = 0; col < cols; ++col) {
          expected[kIds[row] * table_stride + col] += 0.7 * dy.data()[row * stride + col];
        }
      }
      Unaligned dtable(before);
      scatter_add_rows({.dy = dy.data(),
                        .stride = stride,
                        .ids = kIds.data(),
                        .scale = 0.7f,
                        .dtable = dtable.data(),
                        .table_stride = table_stride,
                        .rows = rows,
                        .cols = cols});
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(dtable.data()[i], expected[i], 2e-6);
        if (static_cast<int64_t>(i) % table_stride >= cols) {
          ASSERT_EQ(dtable.data()[i], before[i]) << "between the rows";
        }
      }
    }
  });
}

TEST(ScatterAddRows, SplittingTheColumnsChangesNothing) {
  for_each_target([] {
    const int64_t rows = static_cast<int64_t>(kIds.size()), cols = 129;
    const std::vector<float> dy = random_floats(rows * cols, 1);
    const auto scatter = [&](std::vector<float>& dtable, int64_t begin, int64_t end) {
      scatter_add_rows({.dy = &dy[begin],
                        .stride = cols,
                        .ids = kIds.data(),
                        .scale = 0.7f,
                        .dtable = &dtable[begin],
                        .table_stride = cols,
                        .rows = rows,
                        .cols = end - begin});
    };
    std::vector<float> whole(kTableRows * cols);
    scatter(whole, 0, cols);
    for (const int64_t cut : {1, 64, 100}) {
      std::vector<float> parts(kTableRows * cols);
      scatter(parts, 0, cut);
      scatter(parts, cut, cols);
      EXPECT_EQ(parts, whole);
    }
  });
}

}  // namespace
}  // namespace heed::kernels
