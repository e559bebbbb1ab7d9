#include "kernels/matmul/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/arena.h"
#include "heed/error.h"
#include "kernels/simd/each_target_testing.h"
#include "kernels/simd/kernel_testing.h"

namespace heed::kernels {
namespace {

struct Shape {
  int64_t m, n, k;

  std::string text() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
};

constexpr float kGuard = 12345;

// Matrices with rows further apart than they are long, guard values between the rows of y, and a
// scratch with a guard at its end.
class Operands {
 public:
  // For a pool of that many threads, or fewer.
  explicit Operands(const Shape& s, int threads = 3)
      : shape_(s),
        x_(random_floats(s.m * (s.k + 3), 1)),
        w_(random_floats(s.n * w_row(), 2)),
        y_(static_cast<size_t>(s.m * (s.n + 5)), kGuard),
        scratch_floats_(matmul_scratch_floats(s.m, s.n, s.k, threads)),
        arena_(static_cast<size_t>(scratch_floats_ + 16) * sizeof(float)),
        scratch_(arena_.allocate<float>(static_cast<size_t>(scratch_floats_ + 16))) {
    scratch_[scratch_floats_] = kGuard;
  }

  Matmul product() {
    return {.m = shape_.m,
            .n = shape_.n,
            .k = shape_.k,
            .x = x_.data(),
            .x_row = shape_.k + 3,
            .w = w_.data(),
            .w_row = w_row(),
            .y = y_.data(),
            .y_row = shape_.n + 5,
            .scratch = scratch_};
  }
  // `rows` rows from `first` on, as if they were all; their result is at the start of y.
  Matmul rows(int64_t first, int64_t rows) {
    Matmul p = product();
    p.m = rows;
    p.x += first * p.x_row;
    return p;
  }

  float* x(int64_t i) { return x_.data() + i * (shape_.k + 3); }
  const float* y(int64_t i) const { return y_.data() + i * (shape_.n + 5); }
  std::vector<float> y_rows(int64_t rows) const { return {y_.data(), y(rows)}; }
  float w(int64_t l, int64_t j) const { return w_[static_cast<size_t>(j * w_row() + l)]; }
  bool guards_are_whole() const {
    for (int64_t i = 0; i < shape_.m; ++i) {
      for (int64_t j = shape_.n; j < shape_.n + 5; ++j) {
        if (y(i)[j] != kGuard) return false;
      }
    }
    return scratch_[scratch_floats_] == kGuard;
  }

 private:
  int64_t w_row() const { return shape_.k + 7; }

  Shape shape_;
  std::vector<float> x_, w_, y_;
  int64_t scratch_floats_;
  Arena arena_;
  float* scratch_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The definition: one chain over k, the products rounded (on a CPU without fused multiply-add) or
// not.
std::vector<float> chain(Operands& o, const Shape& s, bool fused) {
  std::vector<float> y(static_cast<size_t>(s.m * (s.n + 5)), kGuard);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < s.k; ++l) {
        const float x = o.x(i)[l], w = o.w(l, j);
        const float rounded = x * w + sum;  // never contracted: see cmake/HeedTargets.cmake
        sum = fused ? std::fma(x, w, sum) : rounded;
      }
      y[static_cast<size_t>(i * (s.n + 5) + j)] = sum;
    }
  }
  return y;
}

std::vector<Shape> odd_shapes() {
  std::vector<Shape> shapes;
  for (int64_t m = 1; m <= 40; ++m) {
    shapes.push_back({m, 1 + 37 * m % 113, 1 + 29 * m % 71});
  }
  for (const int64_t n : {1, 3, 4, 15, 16, 17, 31, 32, 33, 47, 48, 49, 96, 100}) {
    for (const int64_t k : {1, 2, 3, 4, 5, 8, 23}) {
      shapes.push_back({3, n, k});
      shapes.push_back({19, n, k});
    }
  }
  shapes.push_back({1, 300, 1000});
  shapes.push_back({21, 53, 1000});
  shapes.push_back({259, 70, 400});  // in two parts along k
  return shapes;
}

TEST(Matmul, IsOneChainOfFmasOverK) {
  ThreadPool pools[] = {ThreadPool(1), ThreadPool(2), ThreadPool(3)};
  for (const Shape& shape : odd_shapes()) {
    SCOPED_TRACE(shape.text());
    Operands reference(shape);
    const std::vector<float> fused = chain(reference, shape, true);
    const std::vector<float> rounded = chain(reference, shape, false);
    for_each_target([&] {
      for (ThreadPool& pool : pools) {
        Operands o(shape, pool.threads());
        matmul(pool, o.product());
        const std::vector<float> y = o.y_rows(shape.m);
        EXPECT_TRUE(same_bits(y, fused) || same_bits(y, rounded)) << pool.threads() << " threads";
        EXPECT_TRUE(o.guards_are_whole());
      }
    });
    if (HasFailure()) return;
  }
}

// Beyond all blocks: many threads' shares, several parts of k, a weight packed in several goes.
std::vector<Shape> large_shapes() {
  std::vector<Shape> shapes;
  shapes.push_back({301, 517, 1033});
  shapes.push_back({40, 5003, 130});
  shapes.push_back({1100, 130, 65});
  return shapes;
}

TEST(Matmul, IsBatchInvariantOnAnyNumberOfThreads) {
  for (const Shape& shape : large_shapes()) {
    SCOPED_TRACE(shape.text());
    for_each_target([&] {
      ThreadPool one(1);
      Operands o(shape);
      matmul(one, o.product());
      EXPECT_TRUE(o.guards_are_whole());
      const std::vector<float> whole = o.y_rows(shape.m);
      for (const int threads : {2, 3}) {
        ThreadPool pool(threads);
        Operands again(shape, threads);
        matmul(pool, again.product());
        EXPECT_TRUE(same_bits(again.y_rows(shape.m), whole)) << threads << " threads";
      }
      Operands part(shape);
      for (const int64_t rows : {1, 2, 8, 9, 16, 33}) {
        const int64_t first = (shape.m - rows) * 2 / 3;
        matmul(one, part.rows(first, rows));
        const float* begin = o.y(first);
        EXPECT_TRUE(same_bits(part.y_rows(rows), {begin, begin + rows * (shape.n + 5)}))
            << rows << " rows from " << first;
      }
    });
  }
}

TEST(Matmul, MatchesDoublePrecision) {
  ThreadPool pool(2);
  for (const Shape& shape : large_shapes()) {
    SCOPED_TRACE(shape.text());
    Operands o(shape);
    matmul(pool, o.product());
    // Errors of a chain of roundings grow as a random walk.
    const double bound = 1e-6 * static_cast<double>(shape.k);
    for (int64_t i = 0; i < shape.m; i += 17) {
      for (int64_t j = 0; j < shape.n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < shape.k; ++l) sum += static_cast<double>(o.x(i)[l]) * o.w(l, j);
        ASSERT_NEAR(o.y(i)[j], sum, bound) << i << ", " << j;
      }
    }
  }
}

TEST(Matmul, ANonFiniteRowDoesNotAffectOthers) {
  ThreadPool pool(1);
  for (const int64_t m : {5, 20}) {
    const Shape shape{m, 21, 10};
    Operands clean(shape), spoilt(shape);
    spoilt.x(3)[4] = std::numeric_limits<float>::infinity();
    matmul(pool, clean.product());
    matmul(pool, spoilt.product());
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        if (i == 3) {
          EXPECT_TRUE(std::isinf(spoilt.y(i)[j]));
        } else {
          EXPECT_EQ(spoilt.y(i)[j], clean.y(i)[j]);
        }
      }
    }
  }
}

TEST(Matmul, AnEmptySumIsZero) {
  ThreadPool pool(1);
  std::vector<float> y(6, 5.0f);
  matmul(pool, {.m = 2, .n = 3, .k = 0, .y = y.data(), .y_row = 3});
  EXPECT_EQ(y, std::vector<float>(6, 0.0f));
}

TEST(Matmul, RejectsOverlappingRows) {
  ThreadPool pool(1);
  Operands o({2, 4, 6});
  Matmul p = o.product();
  p.x_row = 5;
  EXPECT_THROW(matmul(pool, p), Error);
  p = o.product();
  p.w_row = 5;
  EXPECT_THROW(matmul(pool, p), Error);
  p = o.product();
  p.y_row = 3;
  EXPECT_THROW(matmul(pool, p), Error);
}

TEST(Matmul, ScratchStaysSmall) {
  EXPECT_EQ(matmul_scratch_floats(1, 50257, 768, 64), 0);
  EXPECT_LE(matmul_scratch_floats(4096, 50257, 768, 64), 64 * (1 << 18));
  EXPECT_LE(matmul_scratch_floats(100, 50257, 768, 2), 1 << 16);
  // No more threads than there is work for.
  EXPECT_LE(matmul_scratch_floats(4096, 16, 32, 64), 8 * 48 * 32);
}

}  // namespace
}  // namespace heed::kernels
