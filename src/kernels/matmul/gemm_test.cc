#include "kernels/matmul/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/arena.h"
#include "base/philox.h"
#include "heed/error.h"
#include "kernels/matmul/tiled_gemm.h"
#include "kernels/simd/each_target_testing.h"

namespace heed::kernels {
namespace {

std::vector<float> random_floats(int64_t n, uint32_t site) {
  Random random({.seed = 7, .site = site});
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = random.uniform() - 0.5f;
  return x;
}

struct Shape {
  int64_t m, n, k;
};

// Matrices with rows further apart than they are long, and guard values between them.
struct Operands {
  Operands(const Shape& s, bool ta, bool tb)
      : a(random_floats((ta ? s.k : s.m) * lda(s, ta), 1)),
        b(random_floats((tb ? s.n : s.k) * ldb(s, tb), 2)),
        c(random_floats(s.m * ldc(s), 3)),
        product{.transpose_a = ta,
                .transpose_b = tb,
                .m = s.m,
                .n = s.n,
                .k = s.k,
                .a = a.data(),
                .lda = lda(s, ta),
                .b = b.data(),
                .ldb = ldb(s, tb),
                .c = c.data(),
                .ldc = ldc(s)} {}
  static int64_t lda(const Shape& s, bool ta) { return (ta ? s.m : s.k) + 3; }
  static int64_t ldb(const Shape& s, bool tb) { return (tb ? s.k : s.n) + 5; }
  static int64_t ldc(const Shape& s) { return s.n + 7; }

  std::vector<float> a, b, c;
  Gemm product;
};

double exact(const Gemm& g, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t l = 0; l < g.k; ++l) {
    const double x = g.transpose_a ? g.a[l * g.lda + i] : g.a[i * g.lda + l];
    const double y = g.transpose_b ? g.b[j * g.ldb + l] : g.b[l * g.ldb + j];
    sum += x * y;
  }
  return sum;
}

const Shape kShapes[] = {{1, 1, 1},     {1, 300, 64},  {3, 5, 7},     {16, 33, 17},
                         {65, 129, 31}, {200, 96, 64}, {97, 515, 40}, {640, 64, 300}};

// Transposes of A and B, and accumulate.
class GemmTest : public testing::TestWithParam<std::tuple<bool, bool, bool>> {};

using Product = void (*)(ThreadPool&, const Gemm&);

void ordered(ThreadPool& pool, const Gemm& g) {
  const auto floats = static_cast<size_t>(tiled_gemm_scratch_floats(g.m, g.n, g.k, pool.threads()));
  Arena arena((floats + 16) * sizeof(float));
  ordered_gemm(pool, g, arena.allocate<float>(floats));
}

// As the seam chooses, and by our own products whether they would be chosen or not.
const struct {
  const char* name;
  Product product;
} kProducts[] = {{"gemm", gemm}, {"tiled_gemm", tiled_gemm}, {"ordered_gemm", ordered}};

void expect_exact(Product multiply, const Shape& shape, bool ta, bool tb, bool accumulate) {
  ThreadPool pool(2);
  Operands o(shape, ta, tb);
  o.product.accumulate = accumulate;
  const std::vector<float> before = o.c;
  multiply(pool, o.product);
  const double bound = 1e-6 * std::sqrt(static_cast<double>(shape.k)) + 1e-6;
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < o.product.ldc; ++j) {
      const auto at = static_cast<size_t>(i * o.product.ldc + j);
      if (j >= shape.n) {
        ASSERT_EQ(o.c[at], before[at]) << "written between the rows";
      } else {
        const double expected = exact(o.product, i, j) + (accumulate ? before[at] : 0.0f);
        ASSERT_NEAR(o.c[at], expected, bound)
            << shape.m << "x" << shape.n << "x" << shape.k << " at " << i << ", " << j;
      }
    }
  }
}

TEST_P(GemmTest, MatchesDoublePrecisionAndWritesOnlyC) {
  const auto [ta, tb, accumulate] = GetParam();
  for (const Shape& shape : kShapes) {
    ASSERT_NO_FATAL_FAILURE(expect_exact(gemm, shape, ta, tb, accumulate));
    for_each_target([&, ta = ta, tb = tb, accumulate = accumulate] {
      ASSERT_NO_FATAL_FAILURE(expect_exact(tiled_gemm, shape, ta, tb, accumulate));
      ASSERT_NO_FATAL_FAILURE(expect_exact(ordered, shape, ta, tb, accumulate));
    });
  }
}

TEST_P(GemmTest, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto [ta, tb, accumulate] = GetParam();
  for (const auto& [name, multiply] : kProducts) {
    for (const Shape& shape : {Shape{1, 2048, 512}, Shape{640, 64, 300}, Shape{300, 1200, 96},
                               Shape{1008, 512, 520}, Shape{128, 128, 4080}}) {
      std::vector<float> first;
      for (const int threads : {1, 2, 3, 5}) {
        ThreadPool pool(threads);
        Operands o(shape, ta, tb);
        o.product.accumulate = accumulate;
        multiply(pool, o.product);
        if (threads == 1) {
          first = o.c;
        } else {
          ASSERT_EQ(std::memcmp(first.data(), o.c.data(), first.size() * sizeof(float)), 0)
              << name << ", " << threads << " threads, " << shape.m << "x" << shape.n << "x"
              << shape.k;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GemmTest,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool()),
                         [](const auto& suite) {
                           return std::string(std::get<0>(suite.param) ? "T" : "N") +
                                  (std::get<1>(suite.param) ? "T" : "N") +
                                  (std::get<2>(suite.param) ? "add" : "set");
                         });

TEST(Gemm, AnEmptySumIsZero) {
  ThreadPool pool(1);
  std::vector<float> c(6, 5.0f);
  Gemm g{.m = 2,
         .n = 3,
         .k = 0,
         .a = c.data(),
         .lda = 1,
         .b = c.data(),
         .ldb = 3,
         .c = c.data(),
         .ldc = 3};
  g.accumulate = true;
  gemm(pool, g);
  EXPECT_EQ(c, std::vector<float>(6, 5.0f));
  g.accumulate = false;
  gemm(pool, g);
  EXPECT_EQ(c, std::vector<float>(6, 0.0f));
}

TEST(Gemm, RejectsOverlappingRows) {
  ThreadPool pool(1);
  std::vector<float> x(16);
  EXPECT_THROW(gemm(pool, {.m = 2,
                           .n = 2,
                           .k = 4,
                           .a = x.data(),
                           .lda = 3,
                           .b = x.data(),
                           .ldb = 2,
                           .c = x.data(),
                           .ldc = 2}),
               Error);
}

}  // namespace
}  // namespace heed::kernels
