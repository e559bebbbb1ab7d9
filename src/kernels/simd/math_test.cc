// Measures the error of each function over a dense sweep of floats, on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/simd/each_target_testing.h"
#include "kernels/simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/math_test.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// One value at a time, in every lane: slow, and free of assumptions about tails.
void ExpAll(const float* x, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; ++i) y[i] = hn::GetLane(Exp(d, hn::Set(d, x[i])));
}

void Exp2All(const float* x, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; ++i) y[i] = hn::GetLane(Exp2(d, hn::Set(d, x[i])));
}

void TanhAll(const float* x, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; ++i) y[i] = hn::GetLane(Tanh(d, hn::Set(d, x[i])));
}

void ErfAll(const float* x, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; ++i) y[i] = hn::GetLane(Erf(d, hn::Set(d, x[i])));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {
namespace {

HWY_EXPORT(ExpAll);
HWY_EXPORT(Exp2All);
HWY_EXPORT(TanhAll);
HWY_EXPORT(ErfAll);

using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Floats exp_all(const Floats& x) {
  Floats y(x.size());
  HWY_DYNAMIC_DISPATCH(ExpAll)(x.data(), y.data(), x.size());
  return y;
}

Floats exp2_all(const Floats& x) {
  Floats y(x.size());
  HWY_DYNAMIC_DISPATCH(Exp2All)(x.data(), y.data(), x.size());
  return y;
}

Floats tanh_all(const Floats& x) {
  Floats y(x.size());
  HWY_DYNAMIC_DISPATCH(TanhAll)(x.data(), y.data(), x.size());
  return y;
}

Floats erf_all(const Floats& x) {
  Floats y(x.size());
  HWY_DYNAMIC_DISPATCH(ErfAll)(x.data(), y.data(), x.size());
  return y;
}

// Every `step`-th float of [low, high], both positive.
Floats sweep(float low, float high, uint32_t step) {
  Floats x;
  const uint32_t last = std::bit_cast<uint32_t>(high);
  for (uint32_t bits = std::bit_cast<uint32_t>(low); bits < last; bits += step)
    x.push_back(std::bit_cast<float>(bits));
  x.push_back(high);
  return x;
}

Floats negated(Floats x) {
  for (float& value : x) value = -value;
  return x;
}

double ulp(double exact) {
  const float magnitude = static_cast<float>(std::abs(exact));
  if (magnitude < std::numeric_limits<float>::min())
    return std::numeric_limits<float>::denorm_min();
  return std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

constexpr uint32_t kStep = 1009;  // prime, so that all low bits occur

// Compares function(x) with exact(x) on every instruction set.
void expect_within_ulps(double ulps, const Floats& x, Floats (*function)(const Floats&),
                        double (*exact)(double)) {
  std::vector<double> expected;
  for (const float value : x) expected.push_back(exact(value));
  for_each_target([&] {
    const Floats y = function(x);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = std::abs(y[i] - expected[i]) / ulp(expected[i]);
      if (!(error <= worst)) worst = error, at = i;
    }
    EXPECT_LE(worst, ulps) << "at " << x[at];
  });
}

TEST(Math, ExpIsWithinItsBound) {
  expect_within_ulps(1.1, sweep(1e-10f, 88.72283f, kStep), exp_all, std::exp);
  expect_within_ulps(1.1, negated(sweep(1e-10f, 87.33654f, kStep)), exp_all, std::exp);
}

TEST(Math, Exp2IsWithinItsBound) {
  expect_within_ulps(2.3, sweep(1e-10f, 127.4f, kStep), exp2_all, std::exp2);
  expect_within_ulps(2.3, negated(sweep(1e-10f, 126.0f, kStep)), exp2_all, std::exp2);
}

TEST(Math, Exp2AtTheEndsOfItsRange) {
  const float max = std::numeric_limits<float>::max();
  for_each_target([&] {
    const Floats y = exp2_all({0.0f, -0.0f, -126.0f, 127.0f, -126.01f, -max, -kInfinity});
    EXPECT_EQ(y, (Floats{1, 1, std::numeric_limits<float>::min(), 0x1p127f, 0, 0, 0}));
    for (const float nan : exp2_all({kNan, std::bit_cast<float>(0xffffffffu)}))
      EXPECT_TRUE(std::isnan(nan));
  });
}

TEST(Math, TanhIsWithinItsBound) {
  const Floats x = sweep(1e-6f, 12.0f, kStep);
  expect_within_ulps(7, x, tanh_all, std::tanh);
  expect_within_ulps(7, negated(x), tanh_all, std::tanh);
}

TEST(Math, ErfIsWithinItsBound) {
  const Floats x = sweep(1e-6f, 6.0f, kStep);
  expect_within_ulps(7, x, erf_all, std::erf);
  expect_within_ulps(7, negated(x), erf_all, std::erf);
}

// A result above 1 would make a negative 1 - tanh^2, or a negative probability.
TEST(Math, TanhAndErfStayWithinOne) {
  const Floats x = sweep(2.0f, 12.0f, kStep);
  for_each_target([&] {
    for (const Floats& y : {tanh_all(x), erf_all(x)})
      EXPECT_LE(*std::max_element(y.begin(), y.end()), 1.0f);
  });
}

TEST(Math, ExpAtTheEndsOfItsRange) {
  const float max = std::numeric_limits<float>::max();
  for_each_target([&] {
    const Floats y = exp_all({0.0f, -0.0f, kInfinity, -kInfinity, 88.73f, -87.34f, max, -max});
    EXPECT_EQ(y, (Floats{1, 1, kInfinity, 0, kInfinity, 0, kInfinity, 0}));
    for (const float nan : exp_all({kNan, std::bit_cast<float>(0xffffffffu)}))
      EXPECT_TRUE(std::isnan(nan));
  });
}

TEST(Math, TanhAndErfOutsideTheirRange) {
  const float max = std::numeric_limits<float>::max();
  for_each_target([&] {
    const Floats x = {0.0f, -0.0f, 9.1f, -9.1f, max, -max, kInfinity, -kInfinity};
    const Floats expected = {0, 0, 1, -1, 1, -1, 1, -1};
    for (const Floats& y : {tanh_all(x), erf_all(x)}) {
      EXPECT_EQ(y, expected);
      EXPECT_TRUE(std::signbit(y[1]));
    }
    EXPECT_TRUE(std::isnan(tanh_all({kNan})[0]));
    EXPECT_TRUE(std::isnan(erf_all({kNan})[0]));
  });
}

TEST(InstructionSet, IsTheOneDispatchChooses) {
  for_each_target([] { EXPECT_EQ(instruction_set(), hwy::TargetName(hwy::SupportedTargets())); });
}

}  // namespace
}  // namespace heed::kernels
#endif  // HWY_ONCE
