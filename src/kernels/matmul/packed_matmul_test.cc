// Kernels that quantize activations have one instruction set more than the others.
#define HWY_WANT_AVX3_DL

#include "kernels/matmul/packed_matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/arena.h"
#include "heed/error.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/packed_testing.h"
#include "kernels/rows/elementwise.h"
#include "kernels/simd/each_target_testing.h"

namespace heed::kernels {
namespace {

constexpr float kGuard = 12345;
constexpr int64_t kXGap = 3, kYGap = 5, kResidualGap = 7;  // between rows

struct Shape {
  int64_t m, n, k;
  std::string text() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> input(const Shape& s) { return random_floats(s.m * (s.k + kXGap), 1); }

struct Epilogue {
  const float* bias = nullptr;
  Activation activation = Activation::none;
  const float* residual = nullptr;  // [m, n + kResidualGap]
};

// y [m, n + kYGap] of rows [first, first + m) of x, with guards between the rows that stay.
std::vector<float> product(ThreadPool& pool, const PackedWeight& w, const std::vector<float>& x,
                           int64_t first, int64_t m, const Epilogue& epilogue = {}) {
  std::vector<float> y(static_cast<size_t>(m * (w.n + kYGap)), kGuard);
  const auto floats = static_cast<size_t>(packed_matmul_scratch_floats(m, w, pool.threads()));
  Arena arena((floats + 16) * sizeof(float));
  float* scratch = arena.allocate<float>(floats + 16);
  scratch[floats] = kGuard;
  packed_matmul(pool, {.m = m,
                       .x = x.data() + first * (w.k + kXGap),
                       .x_row = w.k + kXGap,
                       .w = w,
                       .bias = epilogue.bias,
                       .activation = epilogue.activation,
                       .residual = epilogue.residual,
                       .residual_row = w.n + kResidualGap,
                       .y = y.data(),
                       .y_row = w.n + kYGap,
                       .scratch = scratch});
  EXPECT_EQ(scratch[floats], kGuard) << "beyond the scratch";
  return y;
}

// The definitions of packed_matmul.h, one element after the other.
std::vector<float> int8_reference(const PackedMatrix& w, const Shape& s,
                                  const std::vector<float>& x) {
  std::vector<float> y(static_cast<size_t>(s.m * (s.n + kYGap)), kGuard);
  for (int64_t i = 0; i < s.m; ++i) {
    const float* row = x.data() + i * (s.k + kXGap);
    float largest = 0;
    for (int64_t l = 0; l < s.k; ++l) largest = std::max(largest, std::abs(row[l]));
    const float inverse = 127 / largest;
    for (int64_t j = 0; j < s.n; ++j) {
      const std::vector<std::byte> numbers = w.numbers(j);
      int64_t sum = 0;
      for (int64_t l = 0; l < s.k; ++l) {
        const auto q = static_cast<int64_t>(std::nearbyint(row[l] * inverse));
        sum += q * static_cast<int8_t>(numbers[static_cast<size_t>(l)]);
      }
      const float scale = largest > 0 ? largest / 127 : 0;
      y[static_cast<size_t>(i * (s.n + kYGap) + j)] =
          static_cast<float>(sum) * scale * w.scales(j).front();
    }
  }
  return y;
}

std::vector<float> int4_reference(const PackedMatrix& w, const Shape& s,
                                  const std::vector<float>& x) {
  std::vector<float> y(static_cast<size_t>(s.m * (s.n + kYGap)), kGuard);
  for (int64_t j = 0; j < s.n; ++j) {
    const std::vector<std::byte> numbers = w.numbers(j);
    const std::vector<float> scales = w.scales(j);
    for (int64_t i = 0; i < s.m; ++i) {
      const float* row = x.data() + i * (s.k + kXGap);
      float total = 0;
      for (int64_t from = 0; from < s.k; from += kInt4Group) {
        const int64_t end = std::min(from + kInt4Group, s.k);
        float largest = 0;
        for (int64_t l = from; l < end; ++l) largest = std::max(largest, std::abs(row[l]));
        const float inverse = 2047 / largest;
        int64_t sum = 0;
        for (int64_t l = from; l < end; ++l) {
          const auto pair = static_cast<int>(numbers[static_cast<size_t>(l / 2)]);
          const int q = (l % 2 == 0 ? pair & 15 : pair >> 4) - 8;
          if (largest > 0) sum += q * static_cast<int64_t>(std::nearbyint(row[l] * inverse));
        }
        const float scale = scales[static_cast<size_t>(from / kInt4Group)];
        total += static_cast<float>(sum) * (largest / 2047) * scale;
      }
      y[static_cast<size_t>(i * (s.n + kYGap) + j)] = total;
    }
  }
  return y;
}

std::vector<float> float_reference(const PackedMatrix& w, const Shape& s,
                                   const std::vector<float>& x) {
  ThreadPool one(1);
  const std::vector<float> weight = w.floats();
  std::vector<float> y(static_cast<size_t>(s.m * (s.n + kYGap)), kGuard);
  const auto floats = static_cast<size_t>(matmul_scratch_floats(s.m, s.n, s.k, 1));
  Arena arena(floats * sizeof(float) + 64);
  matmul(one, {.m = s.m,
               .n = s.n,
               .k = s.k,
               .x = x.data(),
               .x_row = s.k + kXGap,
               .w = weight.data(),
               .w_row = s.k,
               .y = y.data(),
               .y_row = s.n + kYGap,
               .scratch = arena.allocate<float>(floats)});
  return y;
}

using Reference = std::vector<float> (*)(const PackedMatrix&, const Shape&,
                                         const std::vector<float>&);
Reference integer_reference(WeightType type) {
  static const std::map<WeightType, Reference> references = {{WeightType::int8, int8_reference},
                                                             {WeightType::int4, int4_reference}};
  return references.at(type);
}

std::vector<Shape> odd_shapes() {
  std::vector<Shape> shapes;
  for (int64_t m = 1; m <= 36; ++m) shapes.push_back({m, 1 + 37 * m % 113, 1 + 29 * m % 71});
  for (const int64_t n : {1, 15, 16, 17, 32, 33, 47, 48, 49, 96, 100}) {
    for (const int64_t k : {1, 3, 4, 5, 8, 31, 32, 33, 40}) shapes.push_back({3, n, k});
  }
  shapes.push_back({1, 300, 1000});
  shapes.push_back({21, 53, 1000});
  shapes.push_back({259, 20, 30});
  // Whole tiles of inputs; of rows, whole ones and others.
  for (const int64_t m : {8, 9, 15, 16, 17, 24, 31, 33, 64, 113})
    shapes.push_back({m, 1 + 7 * m % 101, 128});
  shapes.push_back({32, 48, 64});
  shapes.push_back({270, 97, 192});
  return shapes;
}

TEST(PackedMatmul, MatchesItsDefinition) {
  ThreadPool pools[] = {ThreadPool(1), ThreadPool(3)};
  for (const Shape& shape : odd_shapes()) {
    SCOPED_TRACE(shape.text());
    const std::vector<float> x = input(shape);
    for (const WeightTypeInfo& info : weight_types()) {
      SCOPED_TRACE(info.name);
      const PackedMatrix w(info.type, shape.n, shape.k, random_floats(shape.n * shape.k, 2));
      std::vector<float> expected;
      if (info.quantizes_activations) expected = integer_reference(info.type)(w, shape, x);
      for_each_target([&] {
        if (!info.quantizes_activations) expected = float_reference(w, shape, x);
        for (ThreadPool& pool : pools) {
          EXPECT_TRUE(same_bits(product(pool, w.weight(), x, 0, shape.m), expected));
        }
      });
    }
    if (HasFailure()) return;
  }
}

TEST(PackedMatmul, IsBatchInvariantOnAnyNumberOfThreads) {
  const Shape shape{300, 517, 1033};
  const std::vector<float> x = input(shape);
  for (const WeightTypeInfo& info : weight_types()) {
    SCOPED_TRACE(info.name);
    const WeightType type = info.type;
    const PackedMatrix w(type, shape.n, shape.k, random_floats(shape.n * shape.k, 2));
    for_each_target([&] {
      ThreadPool one(1), three(3);
      const std::vector<float> whole = product(one, w.weight(), x, 0, shape.m);
      EXPECT_TRUE(same_bits(product(three, w.weight(), x, 0, shape.m), whole));
      for (const int64_t rows : {1, 2, 3, 4, 5, 8, 9, 64}) {
        const int64_t first = (shape.m - rows) * 2 / 3;
        const float* begin = whole.data() + first * (shape.n + kYGap);
        EXPECT_TRUE(same_bits(product(three, w.weight(), x, first, rows),
                              {begin, begin + rows * (shape.n + kYGap)}))
            << rows << " rows from " << first;
      }
    });
  }
}

// Where 16 bits, or the sum of two products of bytes in them, would not do.
TEST(PackedMatmul, Int8NeverSaturates) {
  const Shape shape{33, 50, 4096};  // enough rows for AMX tiles
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> x(static_cast<size_t>(shape.m * (shape.k + kXGap)), 3.0f);
    const PackedMatrix w(WeightType::int8, shape.n, shape.k,
                         std::vector<float>(static_cast<size_t>(shape.n * shape.k), sign * 0.5f));
    const std::vector<float> expected = int8_reference(w, shape, x);
    for_each_target([&] {
      ThreadPool one(1);
      EXPECT_TRUE(same_bits(product(one, w.weight(), x, 0, shape.m), expected));
    });
    EXPECT_NEAR(expected[0], sign * 0.5f * 3 * 4096, 1);
  }
}

// The largest numbers of both signs, in the weight and in x, where every byte is at its limit.
TEST(PackedMatmul, Int4IsExactAtItsLimits) {
  const Shape shape{41, 50, 100};  // enough rows for AMX tiles
  for (const float w_sign : {1.0f, -1.0f}) {
    for (const float x_sign : {1.0f, -1.0f}) {
      const PackedMatrix w(WeightType::int4, shape.n, shape.k,
                           std::vector<float>(static_cast<size_t>(shape.n * shape.k), w_sign));
      std::vector<float> x(static_cast<size_t>(shape.m * (shape.k + kXGap)), x_sign * 3);
      // … and numbers around those where the upper byte changes.
      for (int64_t l = 0; l < shape.k; l += 2) {
        x[static_cast<size_t>(shape.k + kXGap + l)] *= static_cast<float>(l * 64 + l % 5) / 2047;
      }
      const std::vector<float> expected = int4_reference(w, shape, x);
      for_each_target([&] {
        ThreadPool one(1);
        EXPECT_TRUE(same_bits(product(one, w.weight(), x, 0, shape.m), expected));
      });
      EXPECT_NEAR(expected[0], w_sign * x_sign * 300, 0.01);
    }
  }
}

// The error of 12-bit activations is small.
TEST(PackedMatmul, Int4IsCloseToTheF32Matmul) {
  const Shape shape{5, 96, 1000};
  std::vector<float> x = input(shape);
  x[7] = 1e6f;  // groups are rounded for themselves
  const PackedMatrix w(WeightType::int4, shape.n, shape.k, random_floats(shape.n * shape.k, 2));
  const std::vector<float> weight = w.floats();
  ThreadPool one(1);
  const std::vector<float> y = product(one, w.weight(), x, 0, shape.m);
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      double sum = 0, bound = 0;
      for (int64_t from = 0; from < shape.k; from += kInt4Group) {
        double largest = 0, magnitudes = 0;
        for (int64_t l = from; l < std::min(from + kInt4Group, shape.k); ++l) {
          const double a = x[static_cast<size_t>(i * (shape.k + kXGap) + l)];
          const double b = weight[static_cast<size_t>(j * shape.k + l)];
          sum += a * b;
          largest = std::max(largest, std::abs(a));
          magnitudes += std::abs(b);
        }
        bound += largest * magnitudes;
      }
      EXPECT_NEAR(y[static_cast<size_t>(i * (shape.n + kYGap) + j)], sum, bound / 2047);
    }
  }
}

TEST(PackedMatmul, ANonFiniteRowDoesNotAffectOthers) {
  const Shape shape{33, 21, 140};
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const WeightTypeInfo& info : weight_types()) {
      const PackedMatrix w(info.type, shape.n, shape.k, random_floats(shape.n * shape.k, 2));
      const std::vector<float> x = input(shape);
      std::vector<float> spoilt = x;
      spoilt[static_cast<size_t>(3 * (shape.k + kXGap) + 38)] = bad;
      for_each_target([&] {
        ThreadPool pool(1);
        const std::vector<float> clean = product(pool, w.weight(), x, 0, shape.m);
        const std::vector<float> y = product(pool, w.weight(), spoilt, 0, shape.m);
        for (int64_t i = 0; i < shape.m; ++i) {
          for (int64_t j = 0; j < shape.n; ++j) {
            const auto at = static_cast<size_t>(i * (shape.n + kYGap) + j);
            if (i == 3) {
              EXPECT_TRUE(info.quantizes_activations ? std::isnan(y[at]) : !std::isfinite(y[at]))
                  << i << ", " << j;
            } else {
              EXPECT_EQ(y[at], clean[at]) << i << ", " << j;
            }
          }
        }
      });
    }
  }
}

TEST(PackedMatmul, ZerosAndAlmostZerosGiveZeros) {
  const Shape shape{2, 20, 40};
  ThreadPool pool(1);
  for (const WeightTypeInfo& info : weight_types()) {
    if (!info.quantizes_activations) continue;
    const PackedMatrix w(info.type, shape.n, shape.k, random_floats(shape.n * shape.k, 2));
    for (const float value : {0.0f, 1e-42f}) {
      const std::vector<float> x(static_cast<size_t>(shape.m * (shape.k + kXGap)), value);
      for_each_target([&] {
        const std::vector<float> y = product(pool, w.weight(), x, 0, shape.m);
        for (int64_t j = 0; j < shape.n; ++j) EXPECT_EQ(y[static_cast<size_t>(j)], 0);
      });
    }
  }
}

TEST(PackedMatmul, Int4AddsNothingForAGroupOfZeros) {
  const Shape shape{3, 20, 96};
  std::vector<float> x = input(shape);
  std::fill_n(x.begin() + kInt4Group, kInt4Group, 0.0f);
  const PackedMatrix w(WeightType::int4, shape.n, shape.k, random_floats(shape.n * shape.k, 2));
  const std::vector<float> expected = int4_reference(w, shape, x);
  for_each_target([&] {
    ThreadPool one(1);
    EXPECT_TRUE(same_bits(product(one, w.weight(), x, 0, shape.m), expected));
  });
}

TEST(PackedMatmul, EpilogueHasTheBitsOfBiasActivation) {
  ThreadPool pools[] = {ThreadPool(1), ThreadPool(3)};
  for (const WeightTypeInfo& info : weight_types()) {
    for (const int64_t m : {1, 3, 4, 6, 300}) {
      const Shape shape{m, 117, 70};
      SCOPED_TRACE(info.name + (", " + shape.text()));
      const PackedMatrix w(info.type, shape.n, shape.k, random_floats(shape.n * shape.k, 2));
      const std::vector<float> x = input(shape), bias = random_floats(shape.n, 3);
      const auto check = [&] {
        const std::vector<float> sums = product(pools[0], w.weight(), x, 0, m);
        for (const ActivationInfo& activation : kActivations) {
          std::vector<float> expected = sums;
          for (int64_t i = 0; i < m; ++i) {
            float* row = expected.data() + i * (shape.n + kYGap);
            bias_activation({.x = row,
                             .bias = bias.data(),
                             .activation = activation.activation,
                             .y = row,
                             .rows = 1,
                             .cols = shape.n});
          }
          for (ThreadPool& pool : pools) {
            EXPECT_TRUE(same_bits(
                product(pool, w.weight(), x, 0, m, {bias.data(), activation.activation}), expected))
                << activation.name;
          }
        }
      };
      // Only kernels that quantize activations have the target AVX3_DL: bias_activation() would run
      // another one.
      if (info.quantizes_activations) {
        check();
      } else {
        for_each_target(check);
      }
    }
  }
}

TEST(PackedMatmul, ResidualHasTheBitsOfAdd) {
  ThreadPool pools[] = {ThreadPool(1), ThreadPool(3)};
  for (const WeightTypeInfo& info : weight_types()) {
    for (const int64_t m : {1, 3, 4, 6, 300}) {
      const Shape shape{m, 117, 70};
      SCOPED_TRACE(info.name + (", " + shape.text()));
      const PackedMatrix w(info.type, shape.n, shape.k, random_floats(shape.n * shape.k, 2));
      const std::vector<float> x = input(shape), bias = random_floats(shape.n, 3);
      const std::vector<float> residual = random_floats(m * (shape.n + kResidualGap), 4);
      for_each_target([&] {
        for (Epilogue epilogue :
             {Epilogue{}, Epilogue{.bias = bias.data()}, Epilogue{bias.data(), Activation::relu}}) {
          std::vector<float> expected = product(pools[0], w.weight(), x, 0, m, epilogue);
          for (int64_t i = 0; i < m; ++i) {
            add(residual.data() + i * (shape.n + kResidualGap),
                expected.data() + i * (shape.n + kYGap), shape.n);
          }
          epilogue.residual = residual.data();
          for (ThreadPool& pool : pools) {
            EXPECT_TRUE(same_bits(product(pool, w.weight(), x, 0, m, epilogue), expected));
          }
        }
      });
    }
  }
}

TEST(PackedMatmul, RejectsOverlappingRows) {
  ThreadPool pool(1);
  const PackedMatrix w(WeightType::f16, 4, 6, random_floats(24, 2));
  std::vector<float> x(12), y(8);
  EXPECT_THROW(
      packed_matmul(
          pool, {.m = 2, .x = x.data(), .x_row = 5, .w = w.weight(), .y = y.data(), .y_row = 4}),
      Error);
  EXPECT_THROW(
      packed_matmul(
          pool, {.m = 2, .x = x.data(), .x_row = 6, .w = w.weight(), .y = y.data(), .y_row = 3}),
      Error);
}

TEST(PackedMatmul, ScratchStaysSmall) {
  EXPECT_EQ(packed_matmul_scratch_floats(1, {WeightType::f16, 50257, 768}, 64), 0);
  EXPECT_LE(packed_matmul_scratch_floats(4096, {WeightType::f16, 50257, 768}, 2), 1 << 16);
  for (const WeightType type : {WeightType::int8, WeightType::int4}) {
    EXPECT_LE(packed_matmul_scratch_floats(32, {type, 50257, 768}, 64), 32 * 768);
  }
}

}  // namespace
}  // namespace heed::kernels
