#include "kernels/rows/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/rows/activation_testing.h"
#include "kernels/simd/row_testing.h"

namespace heed::kernels {
namespace {

constexpr double kTolerance = 1e-6;

// By central differences in double precision, which are good to 1e-9.
double slope(Activation a, double x) {
  const double h = 1e-5;
  return (activation_reference(a, x + h) - activation_reference(a, x - h)) / (2 * h);
}

// From far below to far above the range where anything bends; never 0, where ReLU has no slope.
Floats inputs(int64_t n) {
  Floats x = random_row(n, 6, 1);
  for (float& value : x) value += value > 0 ? 1e-3f : -1e-3f;
  if (n > 4) x[0] = 40, x[1] = -40, x[2] = 1e4f, x[3] = -1e4f;
  return x;
}

Doubles exact_of(Activation a, const Floats& x) {
  Doubles y;
  for (const float value : x) y.push_back(activation_reference(a, value));
  return y;
}

Floats forward(Activation activation, Floats x) {
  activate(activation, x.data(), x.data(), static_cast<int64_t>(x.size()));
  return x;
}

template <class Body>
void for_each_case(const Body& body) {
  for_each_target([&] {
    for (const ActivationInfo& info : kActivations) {
      SCOPED_TRACE(info.name);
      body(info.activation);
    }
  });
}

TEST(Activation, TheListIsInTheOrderOfTheEnum) {
  int index = 0;
  for (const ActivationInfo& info : kActivations) {
    EXPECT_EQ(static_cast<int>(info.activation), index++);
    EXPECT_EQ(name(info.activation), info.name);
  }
}

TEST(Activation, MatchesDoublePrecision) {
  for_each_case([](Activation a) {
    for (const int64_t n : kRowSizes) {
      const Floats x = inputs(n);
      Unaligned in(x), out(zeros(n));
      activate(a, in.data(), out.data(), n);
      expect_near(out.values(), exact_of(a, x), kTolerance);
      EXPECT_EQ(forward(a, x), out.values()) << "in place";
    }
  });
}

TEST(Activation, EachElementIsComputedByItself) {
  for_each_case([](Activation a) {
    const Floats x = inputs(1000);
    const Floats y = forward(a, x);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(forward(a, {x[i]})[0], y[i]);
  });
}

TEST(Activation, NanIsNotHidden) {
  for_each_case([](Activation a) {
    EXPECT_TRUE(std::isnan(forward(a, {std::numeric_limits<float>::quiet_NaN()})[0]));
  });
}

TEST(Activation, GradientMatchesDifferences) {
  for_each_case([](Activation a) {
    for (const int64_t n : kRowSizes) {
      const Floats x = inputs(n), dy = random_row(n, 1, 2);
      const Floats y = forward(a, x);
      Doubles expected;
      for (size_t i = 0; i < x.size(); ++i) expected.push_back(dy[i] * slope(a, x[i]));
      Unaligned saved(backward_needs_input(a) ? x : y), gradient(dy), dx(zeros(n));
      activate_backward(a, saved.data(), gradient.data(), dx.data(), n);
      expect_near(dx.values(), expected, 1e-6);
      activate_backward(a, saved.data(), gradient.data(), gradient.data(), n);
      EXPECT_EQ(gradient.values(), dx.values()) << "in place";
    }
  });
}

TEST(BiasActivation, AddsTheBiasAndKeepsTheSum) {
  for_each_case([](Activation a) {
    for (const int64_t cols : kRowSizes) {
      const int64_t rows = 3;
      const Floats x = inputs(rows * cols), bias = random_row(cols, 1, 3);
      Floats expected_sum = x;
      for (int64_t i = 0; i < rows * cols; ++i) expected_sum[i] += bias[i % cols];
      const Floats expected = forward(a, expected_sum);

      Unaligned in(x), b(bias), sum(zeros(rows * cols)), y(zeros(rows * cols));
      BiasActivation args{.x = in.data(),
                          .bias = b.data(),
                          .activation = a,
                          .sum = sum.data(),
                          .y = y.data(),
                          .rows = rows,
                          .cols = cols};
      bias_activation(args);
      EXPECT_EQ(sum.values(), expected_sum);
      EXPECT_EQ(y.values(), expected);

      args.sum = in.data();
      bias_activation(args);
      EXPECT_EQ(in.values(), expected_sum) << "sum in place";
      EXPECT_EQ(y.values(), expected);

      args.sum = nullptr, args.bias = nullptr, args.y = in.data();
      bias_activation(args);
      EXPECT_EQ(in.values(), expected) << "in place, without bias";
    }
  });
}

// [rows, 2 * cols]: gate and up are the two halves of one matrix, as a feed-forward layer has them.
Floats gate_and_up(int64_t rows, int64_t cols) {
  Floats both = inputs(rows * 2 * cols);
  const Floats up = random_row(cols, 1, 6);
  for (int64_t row = 0; row < rows; ++row)
    std::copy(up.begin(), up.end(), both.begin() + (2 * row + 1) * cols);
  return both;
}

TEST(GatedActivation, MatchesItsParts) {
  for_each_case([](Activation a) {
    for (const int64_t cols : kRowSizes) {
      const int64_t rows = 3, stride = 2 * cols;
      Unaligned both(gate_and_up(rows, cols)), y(zeros(rows * cols));
      gated_activation({.activation = a,
                        .gate = both.data(),
                        .up = both.data() + cols,
                        .input_stride = stride,
                        .y = y.data(),
                        .rows = rows,
                        .cols = cols});
      Doubles expected;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < cols; ++i) {
          const float* gate = both.data() + r * stride + i;
          expected.push_back(activation_reference(a, gate[0]) * gate[cols]);
        }
      }
      expect_near(y.values(), expected, 4 * kTolerance);
    }
  });
}

TEST(GatedActivation, GradientMatchesDifferences) {
  for_each_case([](Activation a) {
    for (const int64_t cols : kRowSizes) {
      const int64_t rows = 3, stride = 2 * cols;
      const Floats input = gate_and_up(rows, cols), before = random_row(rows * stride, 1, 4);
      Unaligned both(input), dy(random_row(rows * cols, 1, 5)), gradients(zeros(rows * stride));
      Doubles expected(input.size());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < cols; ++i) {
          const int64_t gate = r * stride + i, up = gate + cols;
          const double v = dy.data()[r * cols + i];
          expected[gate] = v * input[up] * slope(a, input[gate]);
          expected[up] = v * activation_reference(a, input[gate]);
        }
      }
      GatedActivationBackward args{.activation = a,
                                   .gate = both.data(),
                                   .up = both.data() + cols,
                                   .input_stride = stride,
                                   .dy = dy.data(),
                                   .dgate = gradients.data(),
                                   .dup = gradients.data() + cols,
                                   .gradient_stride = stride,
                                   .rows = rows,
                                   .cols = cols};
      gated_activation_backward(args);
      expect_near(gradients.values(), expected, 1e-5);

      Unaligned sums(before);
      args.accumulate = true, args.dgate = sums.data(), args.dup = sums.data() + cols;
      gated_activation_backward(args);
      for (size_t i = 0; i < before.size(); ++i) expected[i] += before[i];
      expect_near(sums.values(), expected, 1e-5);

      args.accumulate = false, args.dgate = both.data(), args.dup = both.data() + cols;
      gated_activation_backward(args);
      EXPECT_EQ(both.values(), gradients.values()) << "in place";
    }
  });
}

}  // namespace
}  // namespace heed::kernels
