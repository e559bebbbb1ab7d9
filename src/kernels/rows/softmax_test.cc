#include "kernels/rows/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/simd/row_testing.h"

namespace heed::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double log_sum(const Doubles& z) {
  const double max = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double value : z) sum += std::exp(value - max);
  return max + std::log(sum);
}

Doubles log_softmax(Doubles z) {
  const double all = log_sum(z);
  for (double& value : z) value -= all;
  return z;
}

Doubles exact_softmax(const Floats& x) {
  Doubles p = log_softmax({x.begin(), x.end()});
  for (double& value : p) value = std::exp(value);
  return p;
}

Floats softmax_of(const Floats& x) {
  Unaligned in(x), out(zeros(static_cast<int64_t>(x.size())));
  softmax(in.data(), out.data(), static_cast<int64_t>(x.size()));
  return out.values();
}

// Logits with one far above the others, as trained models have them.
Floats logits(int64_t n, uint32_t seed = 1) {
  Floats x = random_row(n, 8, seed);
  x[x.size() / 2] += 10;
  return x;
}

// Central differences of a function of double-precision logits.
template <class Function>
Doubles differences(const Function& function, const Floats& at) {
  Doubles x(at.begin(), at.end()), gradient;
  const double h = 1e-5;
  for (double& value : x) {
    const double middle = value;
    value = middle + h;
    const double above = function(x);
    value = middle - h;
    const double below = function(x);
    value = middle;
    gradient.push_back((above - below) / (2 * h));
  }
  return gradient;
}

TEST(Softmax, MatchesDoublePrecision) {
  for_each_target([] {
    for (const int64_t n : kRowSizes) {
      Floats x = logits(n);
      const Floats y = softmax_of(x);
      expect_near(y, exact_softmax(x), 3e-7);
      softmax(x.data(), x.data(), n);
      EXPECT_EQ(x, y) << "in place";
    }
  });
}

TEST(Softmax, MinusInfinityIsExcluded) {
  for_each_target([] {
    EXPECT_EQ(softmax_of({3, -kInfinity, 3}), (Floats{0.5f, 0, 0.5f}));
    EXPECT_EQ(softmax_of(Floats(17, -kInfinity)), Floats(17, 0.0f));
    EXPECT_EQ(softmax_of({-3e38f, -kInfinity}), (Floats{1, 0}));
  });
}

TEST(Softmax, NanIsNotHidden) {
  for_each_target([] {
    for (const Floats& x : {Floats{kNan}, Floats{kNan, -kInfinity}, Floats{1, kNan, 2}}) {
      const Floats y = softmax_of(x);
      EXPECT_TRUE(std::any_of(y.begin(), y.end(), [](float v) { return std::isnan(v); }));
    }
  });
}

TEST(LogSumExp, MatchesDoublePrecision) {
  for_each_target([] {
    for (const int64_t n : kRowSizes) {
      const Floats x = logits(n + 1);  // from its second element on, to be unaligned
      EXPECT_NEAR(log_sum_exp(x.data() + 1, n), log_sum({x.begin() + 1, x.end()}), 2e-6);
    }
    const Floats none(17, -kInfinity), huge = {1e30f, kInfinity};
    EXPECT_EQ(log_sum_exp(none.data(), 17), -kInfinity);
    EXPECT_EQ(log_sum_exp(huge.data(), 2), kInfinity);
  });
}

struct LossCase {
  float label_smoothing, soft_cap;
};
const LossCase kLossCases[] = {{0, 0}, {0.1f, 0}, {0, 15}, {0.1f, 15}};

double cross_entropy_of(Doubles x, int32_t label, const LossCase& c) {
  if (c.soft_cap > 0) {
    for (double& value : x) value = c.soft_cap * std::tanh(value / c.soft_cap);
  }
  const Doubles log_p = log_softmax(x);
  double average = 0;
  for (const double value : log_p) average += value / static_cast<double>(log_p.size());
  return -(1 - c.label_smoothing) * log_p[label] - c.label_smoothing * average;
}

TEST(CrossEntropy, LossAndGradientMatchDoublePrecision) {
  const float scale = 0.25f;
  for (const LossCase& c : kLossCases) {
    for (const int64_t n : kRowSizes) {
      const Floats x = logits(n);
      for (const int32_t label : {static_cast<int32_t>(n - 1), static_cast<int32_t>(n / 2)}) {
        const auto loss_of = [&](const Doubles& z) { return cross_entropy_of(z, label, c); };
        Doubles expected = differences(loss_of, x);
        for (double& value : expected) value *= scale;
        for_each_target([&] {
          Unaligned in(x);
          float loss = -1;
          CrossEntropy args{.logits = in.data(),
                            .stride = n,
                            .labels = &label,
                            .label_smoothing = c.label_smoothing,
                            .soft_cap = c.soft_cap,
                            .gradient_scale = scale,
                            .loss = &loss,
                            .rows = 1,
                            .cols = n};
          cross_entropy(args);
          EXPECT_NEAR(loss, loss_of({x.begin(), x.end()}), 3e-5);
          EXPECT_EQ(in.values(), x) << "logits change only for the gradient";

          const float without_gradient = loss;
          args.gradient = true;
          cross_entropy(args);
          EXPECT_EQ(loss, without_gradient);
          expect_near(in.values(), expected, 1e-6);
        });
      }
    }
  }
}

TEST(CrossEntropy, RowsAreApartAndNegativeLabelsIgnored) {
  for_each_target([] {
    const int64_t rows = 4, cols = 17, stride = 20;
    const Floats x = random_row(rows * stride, 4, 1);
    const std::vector<int32_t> labels = {3, -1, 16, -100};
    Unaligned in(x);
    Floats loss(rows, -1.0f);
    cross_entropy({.logits = in.data(),
                   .stride = stride,
                   .labels = labels.data(),
                   .gradient = true,
                   .loss = loss.data(),
                   .rows = rows,
                   .cols = cols});
    const Floats all = in.values();
    for (int64_t row = 0; row < rows; ++row) {
      const Floats gradient(all.begin() + row * stride, all.begin() + row * stride + cols);
      if (labels[row] < 0) {
        EXPECT_EQ(loss[row], 0.0f);
        EXPECT_EQ(gradient, Floats(cols, 0.0f));
      } else {
        Unaligned one(Floats(x.begin() + row * stride, x.begin() + row * stride + cols));
        float alone = -1;
        cross_entropy({.logits = one.data(),
                       .stride = cols,
                       .labels = &labels[row],
                       .gradient = true,
                       .loss = &alone,
                       .rows = 1,
                       .cols = cols});
        EXPECT_EQ(loss[row], alone);
        EXPECT_EQ(gradient, one.values());
      }
      for (int64_t i = row * stride + cols; i < (row + 1) * stride; ++i)
        EXPECT_EQ(all[i], x[i]) << "between rows";
    }
  });
}

// A vocabulary as models have it: the sums are long.
TEST(CrossEntropy, WideRow) {
  for_each_target([] {
    const int64_t n = 50257;
    const int32_t label = 12345;
    const LossCase c{0.1f, 0};
    Floats x = logits(n);
    const double expected = cross_entropy_of({x.begin(), x.end()}, label, c);
    float loss = -1;
    cross_entropy({.logits = x.data(),
                   .stride = n,
                   .labels = &label,
                   .label_smoothing = c.label_smoothing,
                   .gradient = true,
                   .loss = &loss,
                   .rows = 1,
                   .cols = n});
    EXPECT_NEAR(loss, expected, 1e-5);
    double sum = 0;
    for (const float value : x) sum += value;
    EXPECT_NEAR(sum, 0, 1e-5) << "a softmax's gradient sums to 0";
  });
}

double kl_of(const Doubles& student, const Floats& teacher, double temperature) {
  Doubles s, t;
  for (const double value : student) s.push_back(value / temperature);
  for (const float value : teacher) t.push_back(value / temperature);
  s = log_softmax(s), t = log_softmax(t);
  double sum = 0;
  for (size_t i = 0; i < s.size(); ++i) sum += std::exp(t[i]) * (t[i] - s[i]);
  return temperature * temperature * sum;
}

TEST(KlDivergence, LossAndGradientMatchDoublePrecision) {
  const float scale = 0.5f;
  for (const float temperature : {1.0f, 2.0f}) {
    for (const int64_t n : kRowSizes) {
      const Floats x = random_row(n, 4, 1), teacher_logits = random_row(n, 4, 2);
      const auto loss_of = [&](const Doubles& z) { return kl_of(z, teacher_logits, temperature); };
      Doubles expected = differences(loss_of, x);
      for (double& value : expected) value *= scale;
      for_each_target([&] {
        Unaligned student(x), teacher(teacher_logits);
        float loss = -1;
        KlDivergence args{.student = student.data(),
                          .teacher = teacher.data(),
                          .stride = n,
                          .temperature = temperature,
                          .gradient_scale = scale,
                          .loss = &loss,
                          .rows = 1,
                          .cols = n};
        kl_divergence(args);
        EXPECT_NEAR(loss, loss_of({x.begin(), x.end()}), 3e-5);
        EXPECT_EQ(student.values(), x) << "logits change only for the gradient";
        args.gradient = true;
        kl_divergence(args);
        EXPECT_NEAR(loss, loss_of({x.begin(), x.end()}), 3e-5);
        expect_near(student.values(), expected, 1e-6);
      });
    }
  }
}

TEST(KlDivergence, EqualLogitsGiveZeroAndExcludedTokensAddNothing) {
  for_each_target([] {
    const Floats x = {1, -kInfinity, 0.5f, 2};
    Floats student = x, loss(1);
    kl_divergence({.student = student.data(),
                   .teacher = x.data(),
                   .stride = 4,
                   .gradient = true,
                   .loss = loss.data(),
                   .rows = 1,
                   .cols = 4});
    EXPECT_NEAR(loss[0], 0, 1e-6);
    expect_near(student, Doubles(4, 0.0), 1e-7);
  });
}

// Both rows end to end, so that one vector of differences covers them.
double twin_loss_of(const Doubles& both, int32_t label, float smoothing, double weight) {
  const auto middle = both.begin() + static_cast<int64_t>(both.size() / 2);
  const Doubles first(both.begin(), middle), second(middle, both.end());
  const Doubles p = log_softmax(first), q = log_softmax(second);
  double divergence = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    divergence += (std::exp(p[i]) - std::exp(q[i])) * (p[i] - q[i]) / 2;
  }
  const LossCase c{smoothing, 0};
  return cross_entropy_of(first, label, c) + cross_entropy_of(second, label, c) +
         weight * divergence;
}

TEST(TwinCrossEntropy, LossAndGradientMatchDoublePrecision) {
  const float scale = 0.5f;
  for (const float smoothing : {0.0f, 0.1f}) {
    for (const float weight : {0.0f, 1.0f, 5.0f}) {
      for (const int64_t n : kRowSizes) {
        Floats x = random_row(2 * n, 4, 1);
        const auto label = static_cast<int32_t>(n / 2);
        const auto loss_of = [&](const Doubles& z) {
          return twin_loss_of(z, label, smoothing, weight);
        };
        Doubles expected = differences(loss_of, x);
        for (double& value : expected) value *= scale;
        for_each_target([&] {
          Unaligned in(x);
          float loss = -1, divergence = -1;
          TwinCrossEntropy args{.first = in.data(),
                                .second = in.data() + n,
                                .stride = n,
                                .labels = &label,
                                .label_smoothing = smoothing,
                                .divergence_weight = weight,
                                .gradient_scale = scale,
                                .loss = &loss,
                                .divergence = &divergence,
                                .rows = 1,
                                .cols = n};
          twin_cross_entropy(args);
          EXPECT_NEAR(loss + weight * divergence, loss_of({x.begin(), x.end()}), 6e-5);
          EXPECT_EQ(in.values(), x) << "logits change only for the gradient";
          args.gradient = true;
          twin_cross_entropy(args);
          EXPECT_NEAR(loss + weight * divergence, loss_of({x.begin(), x.end()}), 6e-5);
          expect_near(in.values(), expected, 4e-6);
        });
      }
    }
  }
}

TEST(TwinCrossEntropy, EqualTwinsAgreeIgnoredRowsAreZeroAndExcludedTokensAddNothing) {
  for_each_target([] {
    const int64_t n = 4;
    const Floats row = {1, -kInfinity, 0.5f, 2};
    Floats first = row, second = row;
    first.insert(first.end(), n, 3.0f), second.insert(second.end(), n, -7.0f);
    const std::vector<int32_t> labels = {3, -1};
    Floats loss(2, -1.0f), divergence(2, -1.0f);
    twin_cross_entropy({.first = first.data(),
                        .second = second.data(),
                        .stride = n,
                        .labels = labels.data(),
                        .gradient = true,
                        .loss = loss.data(),
                        .divergence = divergence.data(),
                        .rows = 2,
                        .cols = n});
    EXPECT_NEAR(loss[0], 2 * cross_entropy_of({1, -1e9, 0.5, 2}, 3, {0, 0}), 1e-6);
    EXPECT_EQ(divergence[0], 0.0f);
    EXPECT_EQ(Floats(first.begin(), first.begin() + n), Floats(second.begin(), second.begin() + n));
    EXPECT_EQ(first[1], 0.0f);
    EXPECT_EQ(loss[1], 0.0f);
    EXPECT_EQ(divergence[1], 0.0f);
    EXPECT_EQ(Floats(first.begin() + n, first.end()), Floats(n, 0.0f));
    EXPECT_EQ(Floats(second.begin() + n, second.end()), Floats(n, 0.0f));
  });
}

TEST(TwinCrossEntropy, NanIsNotHidden) {
  for_each_target([] {
    Floats first = {1, kNan, 2}, second = {1, 2, 3};
    const int32_t label = 0;
    float loss = 0, divergence = 0;
    twin_cross_entropy({.first = first.data(),
                        .second = second.data(),
                        .stride = 3,
                        .labels = &label,
                        .loss = &loss,
                        .divergence = &divergence,
                        .rows = 1,
                        .cols = 3});
    EXPECT_TRUE(std::isnan(loss));
  });
}

}  // namespace
}  // namespace heed::kernels
