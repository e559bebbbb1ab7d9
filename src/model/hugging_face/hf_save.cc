// Parameters as the tensors of a file, by the rules of hf_tensor_map.h.
#include <algorithm>
#include <cstring>

#include "heed/error.h"
#include "kernels/matmul/weight_types.h"
#include "kernels/rows/convert.h"
#include "model/hugging_face/hf_layout.h"
#include "model/hugging_face/hugging_face.h"

namespace heed {
namespace {

// Collects the tensors of a file, and converts those that need it.
class Collector {
 public:
  Collector(const HfConfig& hf, DType dtype) : hf_(hf), dtype_(dtype) {}

  void add(const HfTensorRule& rule, std::span<const float> values) { add(rule, values, dtype_); }

  // A packed weight, in its type.
  void add_packed(const HfTensorRule& rule, const Parameters& parameters) {
    const PackedWeight w = parameters.packed(rule.heed);
    const kernels::WeightTypeInfo& type = kernels::weight_type(w.type);
    if (type.is_float) {
      const std::vector<float> floats = parameters.floats(rule.heed);
      const std::span<float> kept{own(floats.size()), floats.size()};
      std::ranges::copy(floats, kept.begin());
      return add(rule, kept, w.type == WeightType::f32 ? dtype_ : dtype_from_name(type.dtype));
    }
    int64_t row = 0;
    for (size_t i = 0; i < rule.parts.size(); ++i) {
      const int64_t rows = hf_part_shape(rule, i).rows;
      add_quantized(rule.written_prefix(hf_) + rule.parts[i], w, row, rows);
      row += rows;
    }
  }

  void add(const HfTensorRule& rule, std::span<const float> values, DType dtype) {
    if (HfElementOrder::is_needed(rule)) {
      const HfElementOrder order(rule, hf_.config);
      const std::span<float> there{own(values.size()), values.size()};
      for (size_t i = 0; i < there.size(); ++i) {
        there[i] = values[static_cast<size_t>(order.index(static_cast<int64_t>(i)))];
      }
      values = there;
    }
    size_t at = 0;
    for (size_t i = 0; i < rule.parts.size(); ++i) {
      const auto size = static_cast<size_t>(checked_element_count(rule.shapes[i]).value());
      add_part(rule, i, values.subspan(at, size), dtype);
      at += size;
    }
  }

  // Rows [first, first + rows) of a weight of integers, and their scales.
  void add_quantized(const std::string& tensor, const PackedWeight& w, int64_t first,
                     int64_t rows) {
    const kernels::WeightTypeInfo& type = kernels::weight_type(w.type);
    const int64_t row_bytes = type.row_bytes(w.k), row_scales = type.row_scales(w.k);
    const auto count = static_cast<size_t>(rows * row_scales);
    std::vector<std::byte>& numbers =
        tensors_.owned.emplace_back(static_cast<size_t>(rows * row_bytes));
    std::vector<float> scales(count);
    for (int64_t r = 0; r < rows; ++r) {
      kernels::unpack_quantized_row(w, first + r, numbers.data() + r * row_bytes,
                                    scales.data() + r * row_scales);
    }
    tensors_.views.push_back({tensor, dtype_from_name(type.dtype), {rows, row_bytes}, numbers});
    const DType dtype = hf_scale_dtype(type);
    std::vector<std::byte>& stored = tensors_.owned.emplace_back(count * element_bytes(dtype));
    if (dtype == DType::f32) {
      std::memcpy(stored.data(), scales.data(), stored.size());
    } else {
      kernels::f32_to_f16(scales.data(), reinterpret_cast<uint16_t*>(stored.data()),
                          static_cast<int64_t>(count));
    }
    tensors_.views.push_back(
        {tensor + kScaleSuffix, dtype, hf_scale_shape(type, rows, w.k), stored});
  }

  void add_table(const HfTensorRule& rule) {
    const std::vector<float> table = hf_sinusoids(hf_.config);
    float* values = own(table.size());
    std::copy(table.begin(), table.end(), values);
    add_part(rule, 0, {values, table.size()}, dtype_);
  }

  HfTensors take() { return std::move(tensors_); }

 private:
  float* own(size_t floats) {
    tensors_.owned.emplace_back(floats * sizeof(float));
    return reinterpret_cast<float*>(tensors_.owned.back().data());
  }

  void add_part(const HfTensorRule& rule, size_t i, std::span<const float> values, DType dtype) {
    std::span<const std::byte> bytes = std::as_bytes(values);
    if (dtype != DType::f32) {
      tensors_.owned.emplace_back(values.size() * sizeof(uint16_t));
      auto* narrow = reinterpret_cast<uint16_t*>(tensors_.owned.back().data());
      const auto convert = dtype == DType::f16 ? kernels::f32_to_f16 : kernels::f32_to_bf16;
      convert(values.data(), narrow, static_cast<int64_t>(values.size()));
      bytes = tensors_.owned.back();
    }
    tensors_.views.push_back(
        {rule.written_prefix(hf_) + rule.parts[i], dtype, rule.shapes[i], bytes});
  }

  const HfConfig& hf_;
  DType dtype_;
  HfTensors tensors_;
};

}  // namespace

HfTensors hf_tensors(const HfConfig& hf, const Parameters& parameters, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) {
    throw Error(ErrorCode::invalid_argument,
                std::string("the type must be f32, f16 or bf16, got ") + name(dtype));
  }
  Collector collector(hf, dtype);
  for (const HfTensorRule& rule : hf_tensor_rules(hf)) {
    if (rule.layout == HfLayout::sinusoids) {
      collector.add_table(rule);
    } else if (parameters.is_packed(rule.heed)) {
      collector.add_packed(rule, parameters);
    } else {
      collector.add(rule, parameters.values(rule.heed));
    }
  }
  return collector.take();
}

HfTensors hf_gradients(const HfConfig& hf, const Parameters& parameters) {
  Collector collector(hf, DType::f32);
  for (const HfTensorRule& rule : hf_tensor_rules(hf)) {
    // An optional tensor is a buffer there, and has no gradient.
    if (!rule.optional) collector.add(rule, parameters.gradient(rule.heed));
  }
  return collector.take();
}

}  // namespace heed
