#include "kernels/rows/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/simd/each_target_testing.h"
#include "kernels/simd/kernel_testing.h"

namespace heed::kernels {
namespace {

TEST(Elementwise, MatchesTheFormula) {
  for_each_target([] {
    for (const int64_t n : kOddSizes) {
      const std::vector<float> x = random_floats(n, 1), y = random_floats(n, 2);
      Unaligned from(x), added(y), scaled(y), fused(y), product(y);
      add(from.data(), added.data(), n);
      scale(1.7f, from.data(), scaled.data(), n);
      multiply_add(-0.3f, from.data(), fused.data(), n);
      multiply(from.data(), y.data(), product.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(added.data()[i], x[i] + y[i]);
        ASSERT_EQ(scaled.data()[i], 1.7f * x[i]);
        ASSERT_NEAR(fused.data()[i], y[i] - 0.3f * x[i], 4e-7f * (std::abs(y[i]) + 2));
        ASSERT_EQ(product.data()[i], x[i] * y[i]);
      }
      EXPECT_EQ(from.values(), x);
    }
  });
}

TEST(Elementwise, WorksInPlace) {
  for_each_target([] {
    for (const int64_t n : kOddSizes) {
      const std::vector<float> x = random_floats(n, 1);
      Unaligned doubled(x), halved(x), squared(x);
      add(doubled.data(), doubled.data(), n);
      scale(0.5f, halved.data(), halved.data(), n);
      multiply(squared.data(), squared.data(), squared.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(doubled.data()[i], 2 * x[i]);
        ASSERT_EQ(halved.data()[i], x[i] / 2);
        ASSERT_EQ(squared.data()[i], x[i] * x[i]);
      }
    }
  });
}

TEST(Elementwise, SplitEqualsTheWhole) {
  for_each_target([] {
    const int64_t n = 1000;
    const std::vector<float> x = random_floats(n, 1), y = random_floats(n, 2);
    for (const int64_t cut : {1, 17, 500, 999}) {
      std::vector<float> whole = y, parts = y;
      multiply_add(0.7f, x.data(), whole.data(), n);
      multiply_add(0.7f, x.data(), parts.data(), cut);
      multiply_add(0.7f, &x[cut], &parts[cut], n - cut);
      EXPECT_EQ(parts, whole);
    }
  });
}

std::vector<double> column_sum_in_double(const ColumnSum& columns,
                                         const std::vector<float>& start) {
  std::vector<double> sum(start.begin(), start.end());
  for (int64_t row = 0; row < columns.rows; ++row) {
    for (int64_t col = 0; col < columns.cols; ++col) {
      sum[col] += columns.x[row * columns.stride + col];
    }
  }
  return sum;
}

TEST(ColumnSum, MatchesDouble) {
  for_each_target([] {
    for (const int64_t rows : {0, 1, 7, 8, 9, 255, 256, 257, 600}) {
      for (const int64_t cols : {1, 7, 17, 64, 129, 1024, 1031}) {
        const int64_t stride = cols + 3;
        // The block ends with the last row, not with the last stride.
        const std::vector<float> x = random_floats(rows == 0 ? 0 : rows * stride - 3, 1);
        for (const bool accumulate : {false, true}) {
          const std::vector<float> before = random_floats(cols, 2);
          Unaligned sum(before);
          const ColumnSum columns{x.data(), stride, sum.data(), accumulate, rows, cols};
          column_sum(columns);
          const std::vector<double> expected =
              column_sum_in_double(columns, accumulate ? before : std::vector<float>(cols));
          for (int64_t col = 0; col < cols; ++col) {
            ASSERT_NEAR(sum.data()[col], expected[col], 1e-6 * std::sqrt(rows + 1.0) * 4)
                << rows << " rows, " << cols << " columns, column " << col;
          }
        }
      }
    }
  });
}

TEST(ColumnSum, SplittingTheColumnsChangesNothing) {
  for_each_target([] {
    const int64_t rows = 777, cols = 1500;
    const std::vector<float> x = random_floats(rows * cols, 1);
    std::vector<float> whole(cols), parts(cols);
    column_sum({x.data(), cols, whole.data(), false, rows, cols});
    for (const int64_t cut : {1, 33, 750, 1499}) {
      column_sum({x.data(), cols, parts.data(), false, rows, cut});
      column_sum({&x[cut], cols, &parts[cut], false, rows, cols - cut});
      EXPECT_EQ(parts, whole) << "cut at " << cut;
    }
  });
}

TEST(ColumnSum, StaysAccurateOverManyRows) {
  // All of one sign, so that the sum grows and each addition loses to rounding; 0.1f is no
  // multiple of a power of two, so it does lose.
  const int64_t rows = 100'000, cols = 5;
  const std::vector<float> x(rows * cols, 0.1f);
  std::vector<float> sum(cols);
  column_sum({x.data(), cols, sum.data(), false, rows, cols});
  for (const float s : sum) EXPECT_NEAR(s / (double{0.1f} * rows), 1, 5e-6);
}

TEST(SumOfSquares, MatchesDouble) {
  for_each_target([] {
    for (const int64_t n : kOddSizes) {
      Unaligned x(random_floats(n, 1)), y(random_floats(n, 2));
      double squares = 0, products = 0;
      for (int64_t i = 0; i < n; ++i) {
        squares += double{x.data()[i]} * x.data()[i];
        products += double{x.data()[i]} * y.data()[i];
      }
      EXPECT_NEAR(sum_of_squares(x.data(), n), squares, 1e-13 * (squares + 1));
      EXPECT_NEAR(dot(x.data(), y.data(), n), products, 1e-13 * (squares + 1));
    }
  });
}

TEST(SumOfSquares, DoesNotOverflow) {
  const std::vector<float> x(100, 1e30f);
  EXPECT_NEAR(sum_of_squares(x.data(), 100) / 1e62, 1, 1e-6);
}

}  // namespace
}  // namespace heed::kernels
