// The Hugging Face tensors of each of Heed's weights, for one config.
#pragma once

#include <string>
#include <vector>

#include "model/hugging_face/hf_architectures.h"
#include "model/hugging_face/hugging_face.h"

namespace heed {

// The side of a matrix whose elements are in another order in the file. With interleaved sinusoids
// (sine, cosine, sine, …) every matrix that reads or writes the residual stream has that order along
// the model's width; Marian's files have all sines first.
enum class HfReordered { no, rows, cols };

// One weight and its tensors.
struct HfTensorRule {
  std::string heed;  // empty: a table computed from the config
  std::vector<std::string> parts;
  std::vector<std::vector<int64_t>> shapes;  // of each part in the file
  HfLayout layout = HfLayout::plain;
  bool optional = false;
  std::vector<std::string> other_names{};
  std::string prefix{};  // of the base model's tensors
  HfReordered reordered = HfReordered::no;

  // A model without a head is the base model, whose tensors have no prefix.
  std::string written_prefix(const HfConfig& hf) const {
    return hf.config.head == Head::none ? "" : prefix;
  }
};

std::vector<HfTensorRule> hf_tensor_rules(const HfConfig& hf);
// All names that a file of this model has, as they are written.
std::vector<std::string> hf_tensor_names(const HfConfig& hf);

}  // namespace heed
