#include "kernels/rows/elementwise.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/elementwise.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/highway.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void add_kernel(const float* x, float* y, int64_t n) {
  const FloatTag d;
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    io.Store(hn::Add(io.Load(d, y + i), io.Load(d, x + i)), d, y + i);
  });
}

void scale_kernel(float factor, const float* x, float* y, int64_t n) {
  const FloatTag d;
  const auto factors = hn::Set(d, factor);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    io.Store(hn::Mul(factors, io.Load(d, x + i)), d, y + i);
  });
}

void multiply_add_kernel(float factor, const float* x, float* y, int64_t n) {
  const FloatTag d;
  const auto factors = hn::Set(d, factor);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    io.Store(hn::MulAdd(factors, io.Load(d, x + i), io.Load(d, y + i)), d, y + i);
  });
}

void multiply_kernel(const float* x, const float* z, float* y, int64_t n) {
  const FloatTag d;
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    io.Store(hn::Mul(io.Load(d, x + i), io.Load(d, z + i)), d, y + i);
  });
}

// Rows are read eight at a time (eight streams, which the prefetchers follow) and summed as a tree;
// these sums run up to kBlockRows; the blocks' sums run up to the total. So no chain of additions
// is longer than about sqrt(rows) for the 100,000 rows of a large batch.
inline constexpr int64_t kRowsAtOnce = 8;
inline constexpr int64_t kBlockRows = 256;
// Columns are worked off in strips whose running sums stay in the first-level cache.
inline constexpr int64_t kStripCols = 1024;

// strip [cols] += the sum of kRowsAtOnce rows from x on.
HWY_INLINE void add_eight_rows(const float* x, int64_t stride, float* HWY_RESTRICT strip,
                               int64_t cols) {
  const FloatTag d;
  for_each_vector(d, cols, [&](int64_t c, auto io) HWY_ATTR {
    const float* p = x + c;
    const auto pair = [&](int64_t row) HWY_ATTR {
      return hn::Add(io.Load(d, p + row * stride), io.Load(d, p + (row + 1) * stride));
    };
    const auto first_four = hn::Add(pair(0), pair(2));
    const auto last_four = hn::Add(pair(4), pair(6));
    const auto sum = hn::Add(io.Load(d, strip + c), hn::Add(first_four, last_four));
    io.Store(sum, d, strip + c);
  });
}

void column_sum_kernel(const ColumnSum& columns) {
  HWY_ALIGN float strip[kStripCols];
  for (int64_t col = 0; col < columns.cols; col += kStripCols) {
    const int64_t cols = std::min(kStripCols, columns.cols - col);
    float* sum = columns.sum + col;
    if (!columns.accumulate) std::fill_n(sum, cols, 0.0f);
    for (int64_t block = 0; block < columns.rows; block += kBlockRows) {
      const int64_t end = std::min(block + kBlockRows, columns.rows);
      std::fill_n(strip, cols, 0.0f);
      int64_t row = block;
      for (; row + kRowsAtOnce <= end; row += kRowsAtOnce) {
        add_eight_rows(columns.x + row * columns.stride + col, columns.stride, strip, cols);
      }
      for (; row < end; ++row) add_kernel(columns.x + row * columns.stride + col, strip, cols);
      add_kernel(strip, sum, cols);
    }
  }
}

// Four chains of additions, so that one need not wait for another; they meet at the end.
double dot_kernel(const float* x, const float* y, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> d32;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  const auto accumulate = [&](int64_t i, auto io, hn::Vec<decltype(d)>& sum) HWY_ATTR {
    const auto from_x = hn::PromoteTo(d, io.Load(d32, x + i));
    const auto from_y = hn::PromoteTo(d, io.Load(d32, y + i));
    sum = hn::MulAdd(from_x, from_y, sum);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    accumulate(i, WholeVector{}, sum0);
    accumulate(i + lanes, WholeVector{}, sum1);
    accumulate(i + 2 * lanes, WholeVector{}, sum2);
    accumulate(i + 3 * lanes, WholeVector{}, sum3);
  }
  for (; i + lanes <= n; i += lanes) accumulate(i, WholeVector{}, sum0);
  if (i < n) accumulate(i, PartOfVector{static_cast<size_t>(n - i)}, sum1);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(add_kernel);
HWY_EXPORT(scale_kernel);
HWY_EXPORT(multiply_add_kernel);
HWY_EXPORT(multiply_kernel);
HWY_EXPORT(column_sum_kernel);
HWY_EXPORT(dot_kernel);

void add(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(add_kernel)(x, y, n); }

void scale(float factor, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(scale_kernel)(factor, x, y, n);
}

void multiply_add(float factor, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(multiply_add_kernel)(factor, x, y, n);
}

void multiply(const float* x, const float* z, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(multiply_kernel)(x, z, y, n);
}

void column_sum(const ColumnSum& columns) { HWY_DYNAMIC_DISPATCH(column_sum_kernel)(columns); }

double sum_of_squares(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(dot_kernel)(x, x, n);
}

double dot(const float* x, const float* y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(dot_kernel)(x, y, n);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
