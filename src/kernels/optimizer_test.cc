#include "kernels/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/test_support.h"

namespace heed::kernels {
namespace {

struct State {
  std::vector<float> value, m, v;
};

State start(int64_t n) {
  return {random_floats(n, 1), std::vector<float>(n), std::vector<float>(n)};
}

AdamStep at_step(AdamStep step, int t) {
  step.bias_correction1 = static_cast<float>(1 - std::pow(double{step.beta1}, t));
  step.bias_correction2 = static_cast<float>(1 - std::pow(double{step.beta2}, t));
  return step;
}

// The formula of optimizer.h for one parameter, in double.
struct Reference {
  double value, m = 0, v = 0;

  void update(const AdamStep& step, double gradient) {
    const double g = step.gradient_scale * gradient + step.l2 * value;
    m = step.beta1 * m + (1 - double{step.beta1}) * g;
    v = step.beta2 * v + (1 - double{step.beta2}) * g * g;
    value -= double{step.learning_rate} * step.weight_decay * value;
    value -= step.learning_rate * (m / step.bias_correction1) /
             (std::sqrt(v / step.bias_correction2) + step.eps);
  }
};

void expect_matches_double(const AdamStep& options) {
  for_each_target([&] {
    for (const int64_t n : kOddSizes) {
      const State state = start(n);
      Unaligned value(state.value), m(state.m), v(state.v);
      std::vector<Reference> references;
      for (const float x : state.value) references.push_back({x});
      for (int t = 1; t <= 12; ++t) {
        const AdamStep step = at_step(options, t);
        const std::vector<float> gradient = random_floats(n, 100 + t);
        adam(step, gradient.data(), value.data(), m.data(), v.data(), n);
        for (int64_t i = 0; i < n; ++i) references[i].update(step, gradient[i]);
      }
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(value.data()[i], references[i].value, 2e-6) << "parameter " << i << " of " << n;
        ASSERT_NEAR(m.data()[i], references[i].m, 1e-6);
        ASSERT_NEAR(v.data()[i], references[i].v, 1e-6 * references[i].v + 1e-12);
      }
    }
  });
}

TEST(Adam, MatchesDouble) { expect_matches_double({.learning_rate = 1e-2f}); }

TEST(Adam, MatchesDoubleWithThePapersBetas) {
  expect_matches_double({.learning_rate = 1e-2f, .beta1 = 0.9f, .beta2 = 0.98f, .eps = 1e-9f});
}

TEST(Adam, MatchesDoubleWithDecoupledDecay) {
  expect_matches_double({.learning_rate = 1e-2f, .weight_decay = 0.1f});
}

TEST(Adam, MatchesDoubleWithL2AndGradientScale) {
  expect_matches_double({.learning_rate = 1e-2f, .l2 = 0.05f, .gradient_scale = 0.25f});
}

TEST(Adam, SplitEqualsTheWhole) {
  for_each_target([] {
    const int64_t n = 1000;
    const std::vector<float> gradient = random_floats(n, 9);
    const AdamStep step = at_step(
        {.learning_rate = 1e-2f, .weight_decay = 0.1f, .l2 = 0.05f, .gradient_scale = 0.7f}, 3);
    State whole = start(n);
    adam(step, gradient.data(), whole.value.data(), whole.m.data(), whole.v.data(), n);
    for (const int64_t cut : {1, 7, 16, 500, 999}) {
      State parts = start(n);
      adam(step, gradient.data(), parts.value.data(), parts.m.data(), parts.v.data(), cut);
      adam(step, &gradient[cut], &parts.value[cut], &parts.m[cut], &parts.v[cut], n - cut);
      EXPECT_EQ(parts.value, whole.value);
      EXPECT_EQ(parts.m, whole.m);
      EXPECT_EQ(parts.v, whole.v);
    }
  });
}

TEST(Adam, LeavesParametersWithoutGradientAlone) {
  State state = start(100);
  const std::vector<float> before = state.value, gradient(100, 0.0f);
  adam(at_step({.learning_rate = 1}, 1), gradient.data(), state.value.data(), state.m.data(),
       state.v.data(), 100);
  EXPECT_EQ(state.value, before);
}

}  // namespace
}  // namespace heed::kernels
