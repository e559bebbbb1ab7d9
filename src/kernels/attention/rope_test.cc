#include "kernels/attention/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/simd/each_target_testing.h"
#include "kernels/simd/kernel_testing.h"

namespace heed::kernels {
namespace {

struct Case {
  int heads, head_dim, rotary_dim;
  RopeLayout layout;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const RopeLayout layout : {RopeLayout::half, RopeLayout::interleaved}) {
    for (const int rotary_dim : {2, 6, 8, 14, 32, 34, 64, 126, 128}) {
      all.push_back({3, rotary_dim, rotary_dim, layout});
      all.push_back({2, rotary_dim + 5, rotary_dim, layout});  // a part of each head
    }
  }
  return all;
}

struct Angles {
  std::vector<float> cos, sin;
};

Angles random_angles(int64_t rows, int pairs) {
  Angles angles;
  for (const float angle : random_floats(rows * pairs, 3)) {
    angles.cos.push_back(std::cos(3 * angle));
    angles.sin.push_back(std::sin(3 * angle));
  }
  return angles;
}

// The rotation of rope.h, one pair at a time, in double.
std::vector<double> turned(const std::vector<float>& x, const Rope& rope) {
  std::vector<double> y(x.begin(), x.end());
  const int pairs = rope.rotary_dim / 2;
  for (int64_t row = 0; row < rope.rows; ++row) {
    for (int head = 0; head < rope.heads; ++head) {
      for (int i = 0; i < pairs; ++i) {
        const int64_t start = row * rope.stride + head * rope.head_dim;
        const bool half = rope.layout == RopeLayout::half;
        const int64_t at = start + (half ? i : 2 * i);
        const int64_t partner = start + (half ? i + pairs : 2 * i + 1);
        const double cos = rope.cos[row * pairs + i];
        const double sin = (rope.inverse ? -1.0 : 1.0) * rope.sin[row * pairs + i];
        y[at] = x[at] * cos - x[partner] * sin;
        y[partner] = x[at] * sin + x[partner] * cos;
      }
    }
  }
  return y;
}

TEST(Rope, MatchesDouble) {
  for_each_target([] {
    const int64_t rows = 4;
    for (const Case& c : cases()) {
      const Angles angles = random_angles(rows, c.rotary_dim / 2);
      const int64_t stride = c.heads * c.head_dim + 3;
      const std::vector<float> x = random_floats(rows * stride - 3, 1);
      for (const bool inverse : {false, true}) {
        Unaligned y(x);
        const Rope arguments{.x = y.data(),
                             .stride = stride,
                             .cos = angles.cos.data(),
                             .sin = angles.sin.data(),
                             .rows = rows,
                             .heads = c.heads,
                             .head_dim = c.head_dim,
                             .rotary_dim = c.rotary_dim,
                             .layout = c.layout,
                             .inverse = inverse};
        rope(arguments);
        const std::vector<double> expected = turned(x, arguments);
        for (size_t i = 0; i < x.size(); ++i) {
          ASSERT_NEAR(y.data()[i], expected[i], 1e-6)
              << "rotary_dim " << c.rotary_dim << " of " << c.head_dim << ", element " << i;
          // Coordinates that are not turned keep their bits.
          if (expected[i] == x[i]) {
            ASSERT_EQ(y.data()[i], x[i]);
          }
        }
      }
    }
  });
}

TEST(Rope, InverseRotatesBack) {
  for_each_target([] {
    const int64_t rows = 4;
    for (const Case& c : cases()) {
      const Angles angles = random_angles(rows, c.rotary_dim / 2);
      const int64_t width = c.heads * c.head_dim;
      const std::vector<float> x = random_floats(rows * width, 1);
      std::vector<float> y = x;
      Rope arguments{.x = y.data(),
                     .stride = width,
                     .cos = angles.cos.data(),
                     .sin = angles.sin.data(),
                     .rows = rows,
                     .heads = c.heads,
                     .head_dim = c.head_dim,
                     .rotary_dim = c.rotary_dim,
                     .layout = c.layout};
      rope(arguments);
      arguments.inverse = true;
      rope(arguments);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], 2e-6);
    }
  });
}

TEST(Rope, RowsAloneEqualRowsTogether) {
  for_each_target([] {
    const int64_t rows = 4;
    for (const Case& c : cases()) {
      const int pairs = c.rotary_dim / 2;
      const Angles angles = random_angles(rows, pairs);
      const int64_t width = c.heads * c.head_dim;
      std::vector<float> together = random_floats(rows * width, 1), alone = together;
      Rope arguments{.x = together.data(),
                     .stride = width,
                     .cos = angles.cos.data(),
                     .sin = angles.sin.data(),
                     .rows = rows,
                     .heads = c.heads,
                     .head_dim = c.head_dim,
                     .rotary_dim = c.rotary_dim,
                     .layout = c.layout};
      rope(arguments);
      arguments.rows = 1;
      for (int64_t row = 0; row < rows; ++row) {
        arguments.x = &alone[row * width];
        arguments.cos = &angles.cos[row * pairs];
        arguments.sin = &angles.sin[row * pairs];
        rope(arguments);
      }
      EXPECT_EQ(alone, together);
    }
  });
}

}  // namespace
}  // namespace heed::kernels
