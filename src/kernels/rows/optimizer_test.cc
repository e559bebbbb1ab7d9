#include "kernels/rows/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "kernels/rows/convert.h"
#include "kernels/simd/each_target_testing.h"
#include "kernels/simd/kernel_testing.h"

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

struct NarrowState {
  std::vector<float> value;
  std::vector<uint16_t> m, v;
};

NarrowState narrow_start(int64_t n) {
  return {random_floats(n, 1), std::vector<uint16_t>(n), std::vector<uint16_t>(n)};
}

std::vector<float> widened(const std::vector<uint16_t>& x) {
  std::vector<float> y(x.size());
  bf16_to_f32(x.data(), y.data(), std::ssize(x));
  return y;
}

TEST(AdamBf16, FollowsAdam) {
  for_each_target([] {
    for (const int64_t n : {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{1000}}) {
      State wide = start(n);
      NarrowState narrow = narrow_start(n);
      const AdamStep options{.learning_rate = 1e-2f, .weight_decay = 0.1f};
      for (uint32_t t = 1; t <= 20; ++t) {
        const AdamStep step = at_step(options, static_cast<int>(t));
        const std::vector<float> gradient = random_floats(n, 100 + t);
        adam(step, gradient.data(), wide.value.data(), wide.m.data(), wide.v.data(), n);
        adam_bf16(step, {{.seed = 7, .step = t}}, gradient.data(), narrow.value.data(),
                  narrow.m.data(), narrow.v.data(), n);
      }
      const std::vector<float> v = widened(narrow.v);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(narrow.value[i], wide.value[i], 2e-3) << i;  // twenty steps of about 1e-2
        ASSERT_NEAR(v[i], wide.v[i], 0.05 * wide.v[i]) << i;
      }
    }
  });
}

// A second moment that only decays, by less than bf16 can tell apart in one step.
TEST(AdamBf16, SmallChangesAreNotLost) {
  constexpr int64_t kCount = 64 * 1024;
  NarrowState state = narrow_start(kCount);
  const std::vector<float> gradient(kCount, 0.0f), ones(kCount, 1.0f);
  f32_to_bf16(ones.data(), state.v.data(), kCount);
  const AdamStep step{.learning_rate = 1e-3f, .beta2 = 0.999f};
  for (uint32_t t = 1; t <= 200; ++t) {
    adam_bf16(step, {{.seed = 7, .step = t}}, gradient.data(), state.value.data(), state.m.data(),
              state.v.data(), kCount);
  }
  double sum = 0;
  for (const float v : widened(state.v)) sum += v;
  EXPECT_NEAR(sum / kCount, std::pow(0.999, 200), 1e-3);
}

TEST(AdamBf16, SplitsHaveTheSameBitsAndInstructionSetsTheSameDraws) {
  constexpr int64_t kCount = 1000;
  const std::vector<float> gradient = random_floats(kCount, 9);
  const AdamStep step = at_step({.learning_rate = 1e-2f, .weight_decay = 0.1f}, 3);
  const RandomKey key{.seed = 3, .step = 4, .site = 5};
  std::optional<NarrowState> first;
  for_each_target([&] {
    NarrowState whole = narrow_start(kCount);
    adam_bf16(step, {key}, gradient.data(), whole.value.data(), whole.m.data(), whole.v.data(),
              kCount);
    NarrowState parts = narrow_start(kCount);
    constexpr int64_t kCut = 5 * kRoundingGroup;
    adam_bf16(step, {key}, gradient.data(), parts.value.data(), parts.m.data(), parts.v.data(),
              kCut);
    adam_bf16(step, {key, kCut}, &gradient[kCut], &parts.value[kCut], &parts.m[kCut],
              &parts.v[kCut], kCount - kCut);
    EXPECT_EQ(parts.m, whole.m);
    EXPECT_EQ(parts.v, whole.v);
    EXPECT_EQ(parts.value, whole.value);
    if (!first) first = whole;
    EXPECT_EQ(whole.m, first->m);  // from zero, products alone: no fused sum to differ in
  });
}

}  // namespace
}  // namespace heed::kernels
