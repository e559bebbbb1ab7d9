// The types that the weight of a linear layer can have, in memory and in files: one row of a table
// for each. Quantizer, loaders, kernels, CLI, benchmarks and tests read the table; none of them
// names a type. docs/adding-a-weight-type.md says how to add one.
//
//   const WeightTypeInfo& info = weight_type(WeightType::int8);
//   std::vector<std::byte> numbers(info.row_bytes(k));
//   for (const WeightTypeInfo& each : weight_types()) names.push_back(each.name);
//
// What a row (one output) of W [out, in] holds:
//
//   f32   the number
//   f16   the number, rounded
//   bf16  the upper half of the f32 number, rounded
//   int8  q · scale, q in -127 … 127, one scale for each row
//   int4  q · scale, q in -8 … 7, one scale for each 32 inputs; scales are f16 numbers, so that
//         q · scale is exact in f32
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace heed {
class ThreadPool;
}

namespace heed::kernels {

struct PackedMatmul;
struct PackedWeight;

enum class WeightType { f32, f16, bf16, int8, int4 };

// One row of W in a packed panel: step_inputs consecutive inputs every step_bytes bytes.
struct PackedColumn {
  std::byte* numbers = nullptr;
  int64_t step_bytes = 0;
};

// K is the number of inputs of a row.
struct WeightTypeInfo {
  WeightType type;
  const char* name;         // in config.json, flags and reports
  const char* description;  // for help texts

  // Files. Rows of numbers, one after the other: block_inputs inputs take block_bytes.
  const char* dtype;  // of the tensor, as DType's names
  int64_t block_inputs, block_bytes;
  // Whether the tensor is an ordinary one of the matrix' shape, as other programs write it.
  // Otherwise it is [rows, row_bytes] with a tensor of scales beside it.
  bool is_float;
  // Whether config.json must name the type. Otherwise the dtype of a tensor alone decides.
  bool is_named_in_config;
  const char* other_dtype;  // of tensors that are not packed, such as biases

  // Scales, if any: f32 (4 bytes) or f16 (2 bytes), each for scale_inputs inputs; 0: for all.
  int64_t scale_bytes = 0, scale_inputs = 0;

  // Memory. A step along K has step_inputs inputs and takes step_bytes in each column.
  int64_t step_inputs, step_bytes;

  float largest = std::numeric_limits<float>::max();  // magnitude that it can hold
  int64_t max_inputs = std::numeric_limits<int64_t>::max();
  double rounding_error = 0;  // upper bound of |W - Ŵ| / |W| for normally distributed numbers
  // Whether matmul rounds activations to integers too. Otherwise its result is that of f32 weights.
  bool quantizes_activations = false;

  // One row. numbers [row_bytes(k)], scales [row_scales(k)]; `numbers` may be unaligned.
  void (*quantize)(const float* row, int64_t k, std::byte* numbers, float* scales);
  void (*dequantize)(const std::byte* numbers, const float* scales, int64_t k, float* row);
  // Packs the quantized values of a row into a zeroed column of a panel, and unpacks them.
  void (*pack)(const std::byte* numbers, int64_t k, const PackedColumn& to);
  void (*unpack)(const PackedColumn& from, int64_t k, std::byte* numbers);

  // packed_matmul.h
  void (*matmul)(ThreadPool& pool, const PackedMatmul& product);
  int64_t (*scratch_floats)(int64_t m, const PackedWeight& w, int threads);

  int64_t row_bytes(int64_t k) const { return (k + block_inputs - 1) / block_inputs * block_bytes; }
  int64_t row_scales(int64_t k) const {
    if (scale_bytes == 0) return 0;
    return scale_inputs == 0 ? 1 : (k + scale_inputs - 1) / scale_inputs;
  }
};

inline constexpr int64_t kInt4Group = 32;  // inputs that share a scale

// In the order of the enum.
std::span<const WeightTypeInfo> weight_types();
const WeightTypeInfo& weight_type(WeightType type);
// Null if there is none of that name.
const WeightTypeInfo* find_weight_type(std::string_view name);
// "f16, int8 or int4", for messages: the names of those for which `accepts` holds.
std::string weight_type_list(bool (*accepts)(const WeightTypeInfo&));

}  // namespace heed::kernels
