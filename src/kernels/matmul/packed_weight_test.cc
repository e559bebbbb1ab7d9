#include "kernels/matmul/packed_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heed/error.h"
#include "kernels/matmul/packed_testing.h"
#include "kernels/rows/convert.h"

namespace heed::kernels {
namespace {

TEST(PackedWeight, UnpackingInvertsPacking) {
  for (const WeightTypeInfo& info : weight_types()) {
    const WeightType type = info.type;
    SCOPED_TRACE(info.name);
    for (const int64_t n : {1, 15, 16, 17, 48, 49, 100}) {
      for (const int64_t k : {1, 3, 4, 31, 32, 33, 70, 600}) {
        SCOPED_TRACE(std::to_string(n) + "x" + std::to_string(k));
        PackedMatrix packed(type, n, k, random_floats(n * k, 3));
        std::vector<std::byte> numbers(static_cast<size_t>(quantized_row_bytes(type, k)));
        std::vector<float> scales(static_cast<size_t>(quantized_row_scales(type, k)));
        for (int64_t row = 0; row < n; ++row) {
          unpack_quantized_row(packed.weight(), row, numbers.data(), scales.data());
          EXPECT_EQ(numbers, packed.numbers(row));
          EXPECT_EQ(scales, packed.scales(row));
          std::vector<float> widened(static_cast<size_t>(k)), unpacked(static_cast<size_t>(k));
          dequantize_row(type, numbers.data(), scales.data(), k, widened.data());
          dequantize_packed_row(packed.weight(), row, unpacked.data());
          EXPECT_EQ(widened, unpacked);
        }
      }
    }
  }
}

// The error of rounding is at most half a step.
TEST(PackedWeight, RoundingErrorIsBounded) {
  const int64_t n = 20, k = 100;
  const std::vector<float> values = random_floats(n * k, 7);
  std::vector<float> row(k);
  for (const WeightTypeInfo& info : weight_types()) {
    const WeightType type = info.type;
    SCOPED_TRACE(info.name);
    PackedMatrix packed(type, n, k, values);
    for (int64_t r = 0; r < n; ++r) {
      dequantize_packed_row(packed.weight(), r, row.data());
      const float* from = values.data() + r * k;
      float largest = 0;
      double error = 0, whole = 0;
      for (int64_t l = 0; l < k; ++l) {
        largest = std::max(largest, std::abs(from[l]));
        error += std::pow(row[static_cast<size_t>(l)] - from[l], 2), whole += from[l] * from[l];
      }
      const double relative = std::sqrt(error / whole);
      EXPECT_LE(relative, info.rounding_error);
      EXPECT_EQ(relative == 0, info.rounding_error == 0);
      if (type != WeightType::int8) continue;
      for (int64_t l = 0; l < k; ++l) {
        EXPECT_LE(std::abs(row[static_cast<size_t>(l)] - from[l]), largest / 127 * 0.5001f);
      }
    }
  }
}

TEST(PackedWeight, RepresentableNumbersAreExact) {
  const int64_t k = 70;
  std::vector<float> row(k), again(k);
  for (int64_t l = 0; l < k; ++l) {
    row[static_cast<size_t>(l)] = static_cast<float>(l % 16 - 8) * 0.25f;
  }
  for (const WeightType type : {WeightType::f32, WeightType::f16, WeightType::int4}) {
    dequantize_packed_row(PackedMatrix(type, 1, k, row).weight(), 0, again.data());
    EXPECT_EQ(row, again);
  }
  for (int64_t l = 0; l < k; ++l) row[static_cast<size_t>(l)] = static_cast<float>(l - 35);
  row[0] = 127;
  dequantize_packed_row(PackedMatrix(WeightType::int8, 1, k, row).weight(), 0, again.data());
  EXPECT_EQ(row, again);
}

TEST(PackedWeight, ZerosStayZeros) {
  const std::vector<float> zeros(3 * 40);
  for (const WeightTypeInfo& info : weight_types()) {
    const WeightType type = info.type;
    SCOPED_TRACE(info.name);
    std::vector<float> row(40, 5.0f);
    dequantize_packed_row(PackedMatrix(type, 3, 40, zeros).weight(), 2, row.data());
    EXPECT_EQ(row, std::vector<float>(40));
  }
}

TEST(PackedWeight, Int4ScalesAreF16Numbers) {
  PackedMatrix packed(WeightType::int4, 4, 96, random_floats(4 * 96, 5));
  for (int64_t row = 0; row < 4; ++row) {
    for (const float scale : packed.scales(row)) {
      uint16_t bits = 0;
      float again = 0;
      f32_to_f16(&scale, &bits, 1);
      f16_to_f32(&bits, &again, 1);
      EXPECT_EQ(scale, again);
    }
  }
}

TEST(WeightTypes, AreFoundByTheirNames) {
  for (const WeightTypeInfo& info : weight_types()) {
    EXPECT_EQ(find_weight_type(info.name), &info);
    EXPECT_EQ(&weight_type(info.type), &info);
  }
  EXPECT_EQ(find_weight_type("int3"), nullptr);
  EXPECT_EQ(find_weight_type(""), nullptr);
  const auto is_integer = [](const WeightTypeInfo& info) { return !info.is_float; };
  EXPECT_EQ(weight_type_list(is_integer), "int8 or int4");
}

// What dequantize_packed_row() relies on: it works on 256 inputs at a time.
TEST(WeightTypes, StepsAndGroupsDivideAPiece) {
  for (const WeightTypeInfo& info : weight_types()) {
    SCOPED_TRACE(info.name);
    EXPECT_EQ(256 % info.step_inputs, 0);
    EXPECT_EQ(256 % info.block_inputs, 0);
    EXPECT_LE(info.row_bytes(256), 4 * 256);
    if (info.scale_inputs == 0) continue;
    EXPECT_EQ(256 % info.scale_inputs, 0);
    EXPECT_EQ(info.scale_inputs % info.step_inputs, 0);
    EXPECT_GE(info.scale_inputs, 16);
  }
}

TEST(PackedWeight, HasTheExpectedSize) {
  // 768 columns are whole panels: nothing is padded.
  EXPECT_EQ(packed_bytes(WeightType::f32, 768, 768), 4 * 768 * 768);
  EXPECT_EQ(packed_bytes(WeightType::f16, 768, 768), 2 * 768 * 768);
  EXPECT_EQ(packed_bytes(WeightType::int8, 768, 768), 768 * 768 + 4 * 768);
  EXPECT_EQ(packed_bytes(WeightType::int4, 768, 768), 768 * 768 / 2 + 2 * 768 * 768 / 32);
}

TEST(PackedWeight, RejectsRowsOutOfRange) {
  PackedMatrix packed(WeightType::int8, 4, 8, random_floats(32, 5));
  std::vector<float> row(8);
  EXPECT_THROW(dequantize_packed_row(packed.weight(), 4, row.data()), Error);
  EXPECT_THROW(dequantize_packed_row(packed.weight(), -1, row.data()), Error);
  EXPECT_THROW(pack_rows(packed.weight(), 2, 3, nullptr, nullptr), Error);
}

}  // namespace
}  // namespace heed::kernels
