#include "model/hugging_face/hf_layout.h"

#include <cmath>

namespace heed {

DType hf_scale_dtype(const kernels::WeightTypeInfo& type) {
  return type.scale_bytes == sizeof(float) ? DType::f32 : DType::f16;
}

std::vector<int64_t> hf_scale_shape(const kernels::WeightTypeInfo& type, int64_t rows,
                                    int64_t cols) {
  if (type.scale_inputs == 0) return {rows};
  return {rows, type.row_scales(cols)};
}

HfPartShape hf_part_shape(const HfTensorRule& rule, size_t part) {
  const std::vector<int64_t>& shape = rule.shapes[part];
  if (shape.size() != 2) return {1, shape.front()};
  const bool transposed = rule.layout == HfLayout::transposed;
  return {shape[transposed ? 1 : 0], shape[transposed ? 0 : 1]};
}

bool hf_can_be_packed(const HfTensorRule& rule) {
  ParameterSpec spec{.name = rule.heed};
  for (size_t i = 0; i < rule.shapes.size(); ++i) {
    spec.rows += hf_part_shape(rule, i).rows, spec.cols = hf_part_shape(rule, i).cols;
  }
  return can_be_packed(spec);
}

std::vector<float> hf_sinusoids(const ModelConfig& c) {
  std::vector<float> table(static_cast<size_t>(c.max_positions * c.width));
  const int64_t half = c.width / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double wave =
        std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(c.width));
    for (int64_t p = 0; p < c.max_positions; ++p) {
      const double angle = static_cast<double>(p) / wave;
      table[static_cast<size_t>(p * c.width + i)] = static_cast<float>(std::sin(angle));
      table[static_cast<size_t>(p * c.width + half + i)] = static_cast<float>(std::cos(angle));
    }
  }
  return table;
}

}  // namespace heed
