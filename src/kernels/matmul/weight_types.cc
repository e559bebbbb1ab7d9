#include "kernels/matmul/weight_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/matmul/packed_matmul.h"
#include "kernels/rows/convert.h"

namespace heed::kernels {
namespace {

// ---- floats -------------------------------------------------------------------------------------

void copy_f32(const float* row, int64_t k, std::byte* numbers, float*) {
  std::memcpy(numbers, row, static_cast<size_t>(k) * sizeof(float));
}
void copy_f32(const std::byte* numbers, const float*, int64_t k, float* row) {
  std::memcpy(row, numbers, static_cast<size_t>(k) * sizeof(float));
}

// Numbers of 16 bits, by the functions of convert.h. Through a buffer: a file has them at any
// address.
constexpr int64_t kPiece = 256;
template <void (*kConvert)(const float*, uint16_t*, int64_t)>
void quantize_to_16_bits(const float* row, int64_t k, std::byte* numbers, float*) {
  uint16_t bits[kPiece];
  for (int64_t l = 0; l < k; l += kPiece) {
    const int64_t count = std::min(kPiece, k - l);
    kConvert(row + l, bits, count);
    std::memcpy(numbers + 2 * l, bits, static_cast<size_t>(2 * count));
  }
}
template <void (*kConvert)(const uint16_t*, float*, int64_t)>
void dequantize_16_bits(const std::byte* numbers, const float*, int64_t k, float* row) {
  uint16_t bits[kPiece];
  for (int64_t l = 0; l < k; l += kPiece) {
    const int64_t count = std::min(kPiece, k - l);
    std::memcpy(bits, numbers + 2 * l, static_cast<size_t>(2 * count));
    kConvert(bits, row + l, count);
  }
}

// A step is one number of kBytes.
template <size_t kBytes>
void pack_numbers(const std::byte* numbers, int64_t k, const PackedColumn& to) {
  for (int64_t l = 0; l < k; ++l) {
    std::memcpy(to.numbers + l * to.step_bytes, numbers + static_cast<size_t>(l) * kBytes, kBytes);
  }
}
template <size_t kBytes>
void unpack_numbers(const PackedColumn& from, int64_t k, std::byte* numbers) {
  for (int64_t l = 0; l < k; ++l) {
    std::memcpy(numbers + static_cast<size_t>(l) * kBytes, from.numbers + l * from.step_bytes,
                kBytes);
  }
}

// ---- integers -----------------------------------------------------------------------------------

// The nearest integer, ties to even, of a number below 2^22: what is added leaves no room for
// fractions. (The C library's function would be a call for each number.)
float nearest(float value) {
  constexpr float kNoFractions = 12582912.0f;  // 1.5 · 2^23
  return (value + kNoFractions) - kNoFractions;
}

// ---- int8: packed as four q + 128 in a word -----------------------------------------------------

constexpr int kInt8Largest = 127;
constexpr int kInt8Offset = 128;  // a packed byte is q + kInt8Offset, unsigned

void quantize_int8(const float* row, int64_t k, std::byte* numbers, float* scale) {
  float largest = 0;
  for (int64_t i = 0; i < k; ++i) largest = std::max(largest, std::abs(row[i]));
  *scale = largest / kInt8Largest;
  for (int64_t i = 0; i < k; ++i) {
    const float q = *scale > 0 ? nearest(row[i] / *scale) : 0;
    numbers[i] = static_cast<std::byte>(
        static_cast<int8_t>(std::clamp<float>(q, -kInt8Largest, kInt8Largest)));
  }
}

void dequantize_int8(const std::byte* numbers, const float* scale, int64_t k, float* row) {
  for (int64_t l = 0; l < k; ++l) {
    row[l] = scale[0] * static_cast<float>(static_cast<int8_t>(numbers[l]));
  }
}

void pack_int8(const std::byte* numbers, int64_t k, const PackedColumn& to) {
  for (int64_t l = 0; l < k; ++l) {  // xor adds the offset
    to.numbers[l / 4 * to.step_bytes + l % 4] = numbers[l] ^ std::byte{kInt8Offset};
  }
}
void unpack_int8(const PackedColumn& from, int64_t k, std::byte* numbers) {
  for (int64_t l = 0; l < k; ++l) {
    numbers[l] = from.numbers[l / 4 * from.step_bytes + l % 4] ^ std::byte{kInt8Offset};
  }
}

// ---- int4: two q + 8 in a byte, the lower half first; packed as eight in a word ----------------

constexpr int kInt4Offset = 8;

float int4_of(float w, float scale) { return nearest(std::clamp(w / scale, -8.0f, 7.0f)); }

// The scale, an f16, that loses least of up to kInt4Group numbers.
float best_int4_scale(const float (&w)[kInt4Group]) {
  float extreme = 0;
  for (const float value : w) {
    if (std::abs(value) > std::abs(extreme)) extreme = value;
  }
  // -8 is one more than 7: the extreme, whichever sign it has, becomes about -8.
  constexpr int kTried = 8;
  constexpr float kStep = 0.1f;
  float scales[2 * kTried + 1];
  for (int i = -kTried; i <= kTried; ++i) {
    scales[i + kTried] = extreme / (-8 + kStep * static_cast<float>(i));
  }
  uint16_t bits[std::size(scales)];
  f32_to_f16(scales, bits, std::size(scales));
  f16_to_f32(bits, scales, std::size(scales));
  float best = scales[kTried], least = -1;
  for (const float scale : scales) {
    if (scale == 0 || !std::isfinite(scale)) continue;
    float error = 0;
    for (const float value : w) {
      const float lost = value - scale * int4_of(value, scale);
      error += lost * lost;
    }
    if (least < 0 || error < least) best = scale, least = error;
  }
  return best;
}

void quantize_int4(const float* row, int64_t k, std::byte* numbers, float* scales) {
  std::fill_n(numbers, (k + 1) / 2, std::byte{0});
  for (int64_t g = 0; g * kInt4Group < k; ++g) {
    const int64_t begin = g * kInt4Group, count = std::min(kInt4Group, k - begin);
    float group[kInt4Group] = {};
    std::copy_n(row + begin, count, group);
    scales[g] = best_int4_scale(group);
    for (int64_t i = begin; i < begin + count; ++i) {
      const int q = scales[g] != 0 ? static_cast<int>(int4_of(row[i], scales[g])) : 0;
      numbers[i / 2] |= static_cast<std::byte>((q + kInt4Offset) << 4 * (i % 2));
    }
  }
}

unsigned int4_bits(std::byte pair, int64_t l) {
  return static_cast<unsigned>(pair) >> 4 * (l % 2) & 15u;
}

void dequantize_int4(const std::byte* numbers, const float* scales, int64_t k, float* row) {
  for (int64_t l = 0; l < k; ++l) {
    const int q = static_cast<int>(int4_bits(numbers[l / 2], l)) - kInt4Offset;
    row[l] = scales[l / kInt4Group] * static_cast<float>(q);
  }
}

void pack_int4(const std::byte* numbers, int64_t k, const PackedColumn& to) {
  for (int64_t l = 0; l < k; ++l) {
    to.numbers[l / 8 * to.step_bytes + l % 8 / 2] |=
        static_cast<std::byte>(int4_bits(numbers[l / 2], l) << 4 * (l % 2));
  }
}
void unpack_int4(const PackedColumn& from, int64_t k, std::byte* numbers) {
  std::fill_n(numbers, (k + 1) / 2, std::byte{0});
  for (int64_t l = 0; l < k; ++l) {
    const std::byte pair = from.numbers[l / 8 * from.step_bytes + l % 8 / 2];
    numbers[l / 2] |= static_cast<std::byte>(int4_bits(pair, l) << 4 * (l % 2));
  }
}

// ---- the table ----------------------------------------------------------------------------------

constexpr float kLargestF16 = 65504;
// 127 · 127 · K must fit into 32 bits.
constexpr int64_t kMaxIntegerInputs = 128 << 10;

constexpr WeightTypeInfo kWeightTypes[] = {
    {.type = WeightType::f32,
     .name = "f32",
     .description = "32-bit floats",
     .dtype = "f32",
     .block_inputs = 1,
     .block_bytes = 4,
     .is_float = true,
     .is_named_in_config = false,
     .other_dtype = "f32",
     .step_inputs = 1,
     .step_bytes = 4,
     .quantize = copy_f32,
     .dequantize = copy_f32,
     .pack = pack_numbers<4>,
     .unpack = unpack_numbers<4>,
     .matmul = f32_matmul,
     .scratch_floats = f32_matmul_scratch_floats},
    {.type = WeightType::f16,
     .name = "f16",
     .description = "half the bytes; a plain folder that other programs read too",
     .dtype = "f16",
     .block_inputs = 1,
     .block_bytes = 2,
     .is_float = true,
     .is_named_in_config = false,
     .other_dtype = "f16",
     .step_inputs = 1,
     .step_bytes = 2,
     .largest = kLargestF16,
     .rounding_error = 3e-4,
     .quantize = quantize_to_16_bits<f32_to_f16>,
     .dequantize = dequantize_16_bits<f16_to_f32>,
     .pack = pack_numbers<2>,
     .unpack = unpack_numbers<2>,
     .matmul = f16_matmul,
     .scratch_floats = dequantizing_matmul_scratch_floats},
    {.type = WeightType::bf16,
     .name = "bf16",
     .description = "half the bytes, the range of f32; for models that were trained in bf16",
     .dtype = "bf16",
     .block_inputs = 1,
     .block_bytes = 2,
     .is_float = true,
     .is_named_in_config = true,  // other files of bf16 are loaded as f32
     .other_dtype = "bf16",
     .step_inputs = 1,
     .step_bytes = 2,
     .largest = 3.3895314e38f,
     .rounding_error = 3e-3,
     .quantize = quantize_to_16_bits<f32_to_bf16>,
     .dequantize = dequantize_16_bits<bf16_to_f32>,
     .pack = pack_numbers<2>,
     .unpack = unpack_numbers<2>,
     .matmul = bf16_matmul,
     .scratch_floats = dequantizing_matmul_scratch_floats},
    {.type = WeightType::int8,
     .name = "int8",
     .description = "8 bits per weight, one scale per output; activations quantized to 8 bits",
     .dtype = "i8",
     .block_inputs = 1,
     .block_bytes = 1,
     .is_float = false,
     .is_named_in_config = true,
     .other_dtype = "f32",
     .scale_bytes = sizeof(float),
     .step_inputs = 4,
     .step_bytes = 4,
     .max_inputs = kMaxIntegerInputs,
     .rounding_error = 0.01,
     .quantizes_activations = true,
     .quantize = quantize_int8,
     .dequantize = dequantize_int8,
     .pack = pack_int8,
     .unpack = unpack_int8,
     .matmul = int8_matmul,
     .scratch_floats = int8_matmul_scratch_floats},
    {.type = WeightType::int4,
     .name = "int4",
     .description =
         "4.5 bits per weight: blocks of 32 with an f16 scale; activations quantized to 12 bits",
     .dtype = "u8",
     .block_inputs = 2,
     .block_bytes = 1,
     .is_float = false,
     .is_named_in_config = true,
     .other_dtype = "f32",
     .scale_bytes = sizeof(uint16_t),
     .scale_inputs = kInt4Group,
     .step_inputs = 8,
     .step_bytes = 4,
     .largest = kLargestF16,  // of a scale
     .max_inputs = kMaxIntegerInputs,
     .rounding_error = 0.1,
     .quantizes_activations = true,
     .quantize = quantize_int4,
     .dequantize = dequantize_int4,
     .pack = pack_int4,
     .unpack = unpack_int4,
     .matmul = int4_matmul,
     .scratch_floats = int4_matmul_scratch_floats},
};

constexpr bool is_in_order_of_the_enum() {
  for (size_t i = 0; i < std::size(kWeightTypes); ++i) {
    if (static_cast<size_t>(kWeightTypes[i].type) != i) return false;
  }
  return true;
}
static_assert(is_in_order_of_the_enum());

}  // namespace

std::span<const WeightTypeInfo> weight_types() { return kWeightTypes; }

const WeightTypeInfo& weight_type(WeightType type) {
  return kWeightTypes[static_cast<size_t>(type)];
}

const WeightTypeInfo* find_weight_type(std::string_view name) {
  for (const WeightTypeInfo& info : kWeightTypes) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::string weight_type_list(bool (*accepts)(const WeightTypeInfo&)) {
  std::vector<const char*> names;
  for (const WeightTypeInfo& info : kWeightTypes) {
    if (accepts(info)) names.push_back(info.name);
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace heed::kernels
