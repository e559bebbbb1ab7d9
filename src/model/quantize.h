// Networks whose matrices take fewer bytes.
//
//   Quantized small = quantize(network, {WeightType::int8, NameFilter("output"), pool});
//   small.network.save("models/small");
//
// Which weights, and by what rules: kernels/matmul/packed_weight.h; the files: docs/quantization.md.
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
// The type that most of the numbers have.
WeightType main_type(const Parameters& parameters);

// Names in which a regular expression finds something; an empty one finds nothing. Throws
// invalid_argument when it is none.
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
// `from` must be of plain floats; those of type f32 are only packed. Throws invalid_argument when a
// weight is not finite, keep_wide leaves nothing to quantize, or it is not empty and finds nothing.
Quantized quantize(const Network& from, const QuantizeRules& rules);

}  // namespace heed
