// Quantization of a network's matrices.
//
//   Quantized small = quantize(network, {WeightType::int8, NameFilter("output"), pool});
//   small.network.save("models/small");
//
// The types: kernels/matmul/weight_types.h; the files: docs/quantization.md.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "heed/model_files.h"
#include "model/network.h"

namespace heed {

const char* weight_type_name(WeightType type);
// Of a type that a model can be quantized to; throws invalid_argument for others.
WeightType weight_type_from_name(std::string_view name);
// The type of most of the weights.
WeightType main_type(const Parameters& parameters);

// Names that contain a match of a regular expression; an empty one matches nothing. Throws
// invalid_argument if it is not a regular expression.
class NameFilter {
 public:
  explicit NameFilter(const std::string& pattern);
  bool matches(const std::string& name) const;
  bool is_empty() const { return !pattern_; }

 private:
  std::optional<std::regex> pattern_;
};

struct QuantizeRules {
  WeightType type = WeightType::int8;
  const NameFilter& keep_wide;  // matrices that become f16 instead
  ThreadPool& pool;
};
struct Quantized {
  Network network;
  std::vector<QuantizedLayer> layers;
};
// `from` must have f32 weights; with type f32 they are only packed. Throws invalid_argument if a
// weight is not finite, if keep_wide matches all matrices, or if it is not empty and matches none.
Quantized quantize(const Network& from, const QuantizeRules& rules);

}  // namespace heed
