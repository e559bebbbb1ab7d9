// How a tensor in a file relates to the weight in Parameters: shapes, element order, and the computed
// tables. Shared by hf_load.cc and hf_save.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/matmul/weight_types.h"
#include "model/files/tensor_file.h"
#include "model/hugging_face/hf_tensor_map.h"

namespace heed {

// A quantized tensor "x" has its scales in "x.scale".
inline constexpr const char* kScaleSuffix = ".scale";

// The type and shape of that tensor for `rows` rows of `cols` inputs.
DType hf_scale_dtype(const kernels::WeightTypeInfo& type);
std::vector<int64_t> hf_scale_shape(const kernels::WeightTypeInfo& type, int64_t rows,
                                    int64_t cols);

// A part as a matrix [out, in], transposed or not in the file.
struct HfPartShape {
  int64_t rows, cols;
};
HfPartShape hf_part_shape(const HfTensorRule& rule, size_t part);

// Whether the weight is a matrix that inference may pack.
bool hf_can_be_packed(const HfTensorRule& rule);

// Marian's and Pegasus' table of sinusoids, computed as they do: sines in the first half of a row,
// cosines in the second.
std::vector<float> hf_sinusoids(const ModelConfig& config);

// The order of elements of a weight whose layout in the file differs from the one in Parameters.
class HfElementOrder {
 public:
  HfElementOrder(const HfTensorRule& rule, const ModelConfig& c)
      : layout_(rule.layout),
        reordered_(rule.reordered),
        width_(c.width),
        heads_(c.stack(c.has_decoder() ? Side::decoder : Side::encoder).heads) {
    const std::vector<int64_t>& shape = rule.shapes.front();
    cols_ = shape.size() > 1 ? shape[1] : 1;  // a vector is one column
    rows_ = 0;
    for (const auto& part : rule.shapes) rows_ += part.front();
  }

  // Whether elements also change rows.
  static bool moves_rows(const HfTensorRule& rule) {
    return rule.layout == HfLayout::transposed || rule.layout == HfLayout::per_head ||
           rule.reordered == HfReordered::rows;
  }
  static bool is_needed(const HfTensorRule& rule) {
    return rule.layout == HfLayout::transposed || rule.layout == HfLayout::per_head ||
           rule.reordered != HfReordered::no;
  }

  // The index in Parameters of an element's index in the file.
  int64_t index(int64_t file_index) const {
    const int64_t row = file_index / cols_, col = file_index % cols_;
    if (layout_ == HfLayout::transposed) return col * rows_ + row;
    if (layout_ == HfLayout::per_head) {
      const int64_t head_dim = rows_ / (3 * heads_);
      const int64_t head = row / (3 * head_dim), part = row / head_dim % 3;
      return ((part * heads_ + head) * head_dim + row % head_dim) * cols_ + col;
    }
    if (reordered_ == HfReordered::rows) return interleaved(row) * cols_ + col;
    return row * cols_ + interleaved(col);
  }

 private:
  // From all sines, then all cosines, to interleaved ones.
  int64_t interleaved(int64_t i) const { return 2 * i < width_ ? 2 * i : 2 * i - width_ + 1; }

  HfLayout layout_;
  HfReordered reordered_;
  int64_t width_, heads_, rows_ = 0, cols_ = 0;  // rows and columns in the file
};

}  // namespace heed
