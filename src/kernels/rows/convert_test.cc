#include "kernels/rows/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/simd/each_target_testing.h"
#include "kernels/simd/kernel_testing.h"

namespace heed::kernels {
namespace {

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

// One f16 at a time, by the definition of its fields.
uint32_t f16_to_f32_bits(uint16_t x) {
  const uint32_t sign = uint32_t{x} >> 15 << 31, exponent = (x >> 10) & 31u, mantissa = x & 1023u;
  if (exponent == 31) {
    const uint32_t quiet = mantissa == 0 ? 0 : 0x00400000;
    return sign | 0x7F800000 | quiet | mantissa << 13;
  }
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, -24)
                               : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
  return sign | bits_of(static_cast<float>(magnitude));
}

// One float at a time: the nearest multiple of the last place that f16 has at this magnitude, by
// the default rounding of nearbyint (ties to even).
uint16_t f32_to_f16_bits(uint32_t bits) {
  const uint16_t sign = static_cast<uint16_t>(bits >> 31 << 15);
  const float x = std::bit_cast<float>(bits & 0x7FFFFFFF);
  if (std::isnan(x)) return static_cast<uint16_t>(sign | 0x7E00 | ((bits >> 13) & 0x3FF));
  if (x >= 65520) return sign | 0x7C00;
  if (x == 0) return sign;
  int exponent = 0;
  std::frexp(x, &exponent);  // x = [0.5, 1) 2^exponent
  exponent = std::max(exponent, -13);
  const double places = std::nearbyint(std::ldexp(double{x}, 11 - exponent));
  // 1024 … 2048 places for a normal number: its hidden bit carries into the exponent by itself.
  return static_cast<uint16_t>(sign + ((exponent + 13) << 10) + static_cast<int>(places));
}

uint16_t f32_to_bf16_bits(uint32_t bits) {
  if (std::isnan(std::bit_cast<float>(bits))) return static_cast<uint16_t>(bits >> 16 | 0x40);
  const uint32_t below = bits & 0xFFFF, kept = bits >> 16;
  const bool up = below > 0x8000 || (below == 0x8000 && kept % 2 == 1);
  return static_cast<uint16_t>(kept + up);
}

std::vector<uint16_t> all_patterns() {
  std::vector<uint16_t> patterns(65536);
  std::iota(patterns.begin(), patterns.end(), uint16_t{0});
  return patterns;
}

// Every 16-bit float widened, its neighbours, the ties between it and the next; and random bits.
std::vector<uint32_t> hard_floats() {
  std::vector<uint32_t> floats;
  for (const uint16_t pattern : all_patterns()) {
    for (const uint32_t centre :
         {f16_to_f32_bits(pattern), f16_to_f32_bits(pattern) + (1u << 12), uint32_t{pattern} << 16,
          (uint32_t{pattern} << 16) + (1u << 15)}) {
      for (const uint32_t bits : {centre - 1, centre, centre + 1}) floats.push_back(bits);
    }
  }
  std::mt19937 generator(5);
  for (int i = 0; i < 100'000; ++i) floats.push_back(generator());
  for (int exponent = -30; exponent < 20; ++exponent) {
    for (int i = 0; i < 2000; ++i) {
      const float mantissa = 1 + static_cast<float>(generator() % (1 << 20)) * 0x1p-20f;
      floats.push_back(bits_of(std::ldexp(mantissa, exponent)));
    }
  }
  return floats;
}

TEST(Convert, WidensEveryPattern) {
  const std::vector<uint16_t> patterns = all_patterns();
  for_each_target([&] {
    std::vector<float> from_f16(65536), from_bf16(65536);
    f16_to_f32(patterns.data(), from_f16.data(), 65536);
    bf16_to_f32(patterns.data(), from_bf16.data(), 65536);
    for (const uint16_t pattern : patterns) {
      ASSERT_EQ(bits_of(from_f16[pattern]), f16_to_f32_bits(pattern)) << "f16 " << pattern;
      ASSERT_EQ(bits_of(from_bf16[pattern]), uint32_t{pattern} << 16) << "bf16 " << pattern;
    }
  });
}

TEST(Convert, NarrowsToTheNearest) {
  const std::vector<uint32_t> floats = hard_floats();
  std::vector<float> x;
  for (const uint32_t bits : floats) x.push_back(std::bit_cast<float>(bits));
  for_each_target([&] {
    std::vector<uint16_t> f16(x.size()), bf16(x.size());
    f32_to_f16(x.data(), f16.data(), static_cast<int64_t>(x.size()));
    f32_to_bf16(x.data(), bf16.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(f16[i], f32_to_f16_bits(floats[i])) << "f16 of bits " << floats[i];
      ASSERT_EQ(bf16[i], f32_to_bf16_bits(floats[i])) << "bf16 of bits " << floats[i];
    }
  });
}

TEST(Convert, ReferenceHandlesSpecialValues) {
  EXPECT_EQ(f32_to_f16_bits(bits_of(1.0f)), 0x3C00);
  EXPECT_EQ(f32_to_f16_bits(bits_of(-2.0f)), 0xC000);
  EXPECT_EQ(f32_to_f16_bits(bits_of(65504.0f)), 0x7BFF);  // the largest
  EXPECT_EQ(f32_to_f16_bits(bits_of(65519.0f)), 0x7BFF);  // rounds down to it
  EXPECT_EQ(f32_to_f16_bits(bits_of(65520.0f)), 0x7C00);  // the tie goes to infinity
  EXPECT_EQ(f32_to_f16_bits(bits_of(0x1p-14f)), 0x0400);  // the smallest normal number
  EXPECT_EQ(f32_to_f16_bits(bits_of(0x1p-24f)), 0x0001);  // the smallest subnormal
  EXPECT_EQ(f32_to_f16_bits(bits_of(0x1p-25f)), 0x0000);  // the tie goes to even
  EXPECT_EQ(f32_to_f16_bits(bits_of(0x1.8p-25f)), 0x0001);
  EXPECT_EQ(f16_to_f32_bits(0x3555), bits_of(0.333251953125f));
}

TEST(Convert, NarrowingUndoesWidening) {
  const std::vector<uint16_t> patterns = all_patterns();
  std::vector<float> wide(65536);
  std::vector<uint16_t> narrow(65536);
  const auto is_nan = [](uint16_t x, uint16_t infinity) { return (x & 0x7FFF) > infinity; };
  f16_to_f32(patterns.data(), wide.data(), 65536);
  f32_to_f16(wide.data(), narrow.data(), 65536);
  for (const uint16_t x : patterns) EXPECT_EQ(narrow[x], is_nan(x, 0x7C00) ? x | 0x0200 : x);
  bf16_to_f32(patterns.data(), wide.data(), 65536);
  f32_to_bf16(wide.data(), narrow.data(), 65536);
  for (const uint16_t x : patterns) EXPECT_EQ(narrow[x], is_nan(x, 0x7F80) ? x | 0x0040 : x);
}

TEST(Convert, HandlesAnyLengthAndAddress) {
  for_each_target([] {
    for (const int64_t n : kOddSizes) {
      Unaligned x(random_floats(n, 1)), y(std::vector<float>(n, -1.0f));
      // One element before and none after: the heap block ends with the data.
      std::vector<uint16_t> f16(n + 1, 0xABCD), bf16(n + 1, 0xABCD);
      f32_to_f16(x.data(), f16.data() + 1, n);
      f32_to_bf16(x.data(), bf16.data() + 1, n);
      EXPECT_EQ(f16[0], 0xABCD);
      EXPECT_EQ(bf16[0], 0xABCD);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(f16[i + 1], f32_to_f16_bits(bits_of(x.data()[i])));
        ASSERT_EQ(bf16[i + 1], f32_to_bf16_bits(bits_of(x.data()[i])));
      }
      f16_to_f32(f16.data() + 1, y.data(), n);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(bits_of(y.data()[i]), f16_to_f32_bits(f16[i + 1]));
      bf16_to_f32(bf16.data() + 1, y.data(), n);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(bits_of(y.data()[i]), uint32_t{bf16[i + 1]} << 16);
    }
  });
}

}  // namespace
}  // namespace heed::kernels
