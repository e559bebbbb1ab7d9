// Finds the tensors of a file for the rules of an architecture, and reports all differences at once.
#pragma once

#include <string>
#include <vector>

#include "kernels/matmul/weight_types.h"
#include "model/files/tensor_file.h"
#include "model/hugging_face/hf_tensor_map.h"

namespace heed {

// A rule and the tensors found for it; none for an optional one that is absent.
struct HfMatch {
  const HfTensorRule* rule;
  std::vector<const TensorView*> parts;
  std::vector<const TensorView*> scales{};  // of quantized parts
  WeightType type = WeightType::f32;        // in which it can stay
  bool is_quantized() const { return !kernels::weight_type(type).is_float; }
};

// Throws corrupt_file that lists every missing, extra and misshapen tensor.
std::vector<HfMatch> hf_match(const HfConfig& hf, const std::vector<HfTensorRule>& rules,
                              const TensorFile& file, const std::string& where);

}  // namespace heed
