// Tensors of a file into Parameters, by the rules of hf_tensor_map.h.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "heed/error.h"
#include "model/hugging_face/hf_layout.h"
#include "model/hugging_face/hf_match.h"
#include "model/hugging_face/hugging_face.h"

namespace heed {
namespace {

void check_numbers(std::span<const float> values, const HfTensorRule& rule,
                   const std::string& where) {
  if (std::none_of(values.begin(), values.end(), [](float x) { return std::isnan(x); })) return;
  throw Error(ErrorCode::corrupt_file, where + ": " + rule.parts.front() + " contains NaN",
              "the model diverged in training, or the file is damaged");
}

// The table is computed, so a file with another one cannot be loaded.
void check_sinusoids(const HfMatch& match, const ModelConfig& c, const std::string& where) {
  const std::vector<float> expected = hf_sinusoids(c);
  std::vector<float> found(expected.size());
  copy_as_f32(*match.parts.front(), found.data());
  constexpr float kRounding = 1e-2f;  // of a table stored in bf16
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::abs(found[i] - expected[i]) <= kRounding) continue;
    throw Error(ErrorCode::unsupported,
                where + ": " + match.parts.front()->name + " is not the table of sinusoids");
  }
}

// Calls use(piece, at) for the elements of a tensor in order, and releases the pages that were used;
// otherwise a model would be in memory twice while it loads.
template <class Use>
void each_piece(const TensorView& tensor, const TensorFile& file, const Use& use) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  const int64_t count = tensor.element_count();
  const size_t size = count > 0 ? tensor.bytes.size() / static_cast<size_t>(count) : 0;
  for (int64_t at = 0; at < count; at += kPiece) {
    const int64_t piece = std::min(kPiece, count - at);
    const auto bytes =
        tensor.bytes.subspan(static_cast<size_t>(at) * size, static_cast<size_t>(piece) * size);
    use(TensorView{tensor.name, tensor.dtype, {piece}, bytes}, at);
    file.drop_pages();
  }
}

// A tensor of floats.
void load_floats(const HfMatch& match, const ModelConfig& c, const TensorFile& file,
                 std::span<float> values, const std::string& where) {
  const HfTensorRule& rule = *match.rule;
  const bool is_rearranged = HfElementOrder::is_needed(rule);
  const HfElementOrder order(rule, c);
  std::vector<float> numbers;
  int64_t first = 0;
  for (const TensorView* part : match.parts) {
    each_piece(*part, file, [&](const TensorView& piece, int64_t at) {
      if (!is_rearranged) return copy_as_f32(piece, values.data() + first + at);
      numbers.resize(static_cast<size_t>(piece.element_count()));
      copy_as_f32(piece, numbers.data());
      for (size_t i = 0; i < numbers.size(); ++i) {
        values[static_cast<size_t>(order.index(first + at + static_cast<int64_t>(i)))] = numbers[i];
      }
    });
    first += part->element_count();
  }
  HEED_CHECK(first == static_cast<int64_t>(values.size()), "hf_load: parts must fill " + rule.heed);
  check_numbers(values, rule, where);
}

// Rows of a tensor, some at a time: use(bytes, first, rows) for the whole of it.
template <class Use>
void each_rows(const TensorView& tensor, int64_t rows, const TensorFile& file, const Use& use) {
  constexpr int64_t kPieceBytes = int64_t{1} << 21;
  const int64_t row_bytes = static_cast<int64_t>(tensor.bytes.size()) / std::max<int64_t>(rows, 1);
  const int64_t piece = std::max<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1);
  for (int64_t first = 0; first < rows; first += piece) {
    use(tensor.bytes.data() + first * row_bytes, first, std::min(piece, rows - first));
    file.drop_pages();
  }
}

// A float matrix, packed as f32, f16 or bf16. Values that have that type in the file do not change.
void load_packed_floats(const HfMatch& match, const ModelConfig& c, const TensorFile& file,
                        const PackedWeight& to, const std::string& where) {
  const HfTensorRule& rule = *match.rule;
  std::vector<std::byte> narrow;
  const auto pack = [&](int64_t first, int64_t rows, const float* values) {
    check_numbers({values, static_cast<size_t>(rows * to.k)}, rule, where);
    narrow.resize(static_cast<size_t>(rows * kernels::quantized_row_bytes(to.type, to.k)));
    kernels::quantize_rows(to.type, {values, rows, to.k}, narrow.data(), nullptr);
    kernels::pack_rows(to, first, rows, narrow.data(), nullptr);
  };
  std::vector<float> floats, ordered;
  if (HfElementOrder::moves_rows(rule)) {
    floats.resize(static_cast<size_t>(to.n * to.k));
    load_floats(match, c, file, floats, where);
    return pack(0, to.n, floats.data());
  }
  const bool is_rearranged = HfElementOrder::is_needed(rule);
  const HfElementOrder order(rule, c);
  int64_t row = 0;
  for (size_t i = 0; i < match.parts.size(); ++i) {
    const TensorView& part = *match.parts[i];
    each_rows(
        part, hf_part_shape(rule, i).rows, file,
        [&](const std::byte* bytes, int64_t first, int64_t rows) {
          const auto size = static_cast<size_t>(rows * to.k);
          floats.resize(size);
          const size_t part_bytes = size * element_bytes(part.dtype);
          copy_as_f32({part.name, part.dtype, {rows, to.k}, {bytes, part_bytes}}, floats.data());
          if (is_rearranged) {
            ordered.resize(size);
            for (size_t e = 0; e < size; ++e) {
              ordered[static_cast<size_t>(order.index(static_cast<int64_t>(e)))] = floats[e];
            }
          }
          pack(row + first, rows, is_rearranged ? ordered.data() : floats.data());
        });
    row += hf_part_shape(rule, i).rows;
  }
}

// A matrix of integers and scales: use(row, rows, numbers, scales) for the whole of it.
template <class Use>
void each_quantized_rows(const HfMatch& match, const TensorFile& file, const std::string& where,
                         const Use& use) {
  int64_t row = 0;
  for (size_t i = 0; i < match.parts.size(); ++i) {
    const HfPartShape shape = hf_part_shape(*match.rule, i);
    std::vector<float> scales(static_cast<size_t>(match.scales[i]->element_count()));
    copy_as_f32(*match.scales[i], scales.data());
    if (!std::all_of(scales.begin(), scales.end(), [](float s) { return std::isfinite(s); })) {
      throw Error(ErrorCode::corrupt_file,
                  where + ": " + match.scales[i]->name + " has a number that is not finite",
                  "the file is damaged; quantize the model again");
    }
    const int64_t row_scales = kernels::quantized_row_scales(match.type, shape.cols);
    each_rows(*match.parts[i], shape.rows, file,
              [&](const std::byte* numbers, int64_t first, int64_t rows) {
                use(row + first, rows, numbers, scales.data() + first * row_scales);
              });
    row += shape.rows;
  }
}

void load(const HfMatch& match, const ModelConfig& c, const TensorFile& file,
          Parameters& parameters, const std::string& where) {
  const HfTensorRule& rule = *match.rule;
  if (rule.layout == HfLayout::sinusoids) return check_sinusoids(match, c, where);
  const bool is_packed = parameters.is_packed(rule.heed);
  if (match.is_quantized() && is_packed) {
    each_quantized_rows(
        match, file, where,
        [&](int64_t row, int64_t rows, const std::byte* numbers, const float* scales) {
          kernels::pack_rows(parameters.packed(rule.heed), row, rows, numbers, scales);
        });
  } else if (match.is_quantized()) {
    const std::span<float> values = parameters.values(rule.heed);
    const int64_t k = hf_part_shape(rule, 0).cols;
    const int64_t row_bytes = kernels::quantized_row_bytes(match.type, k);
    const int64_t row_scales = kernels::quantized_row_scales(match.type, k);
    each_quantized_rows(
        match, file, where,
        [&](int64_t row, int64_t rows, const std::byte* numbers, const float* scales) {
          for (int64_t r = 0; r < rows; ++r) {
            kernels::dequantize_row(match.type, numbers + r * row_bytes, scales + r * row_scales, k,
                                    values.data() + (row + r) * k);
          }
        });
  } else if (is_packed) {
    load_packed_floats(match, c, file, parameters.packed(rule.heed), where);
  } else {
    load_floats(match, c, file, parameters.values(rule.heed), where);
  }
}

}  // namespace

Parameters hf_load(const HfConfig& hf, const TensorFile& file, const std::string& where,
                   WeightForm form) {
  const std::vector<HfTensorRule> rules = hf_tensor_rules(hf);
  const std::vector<HfMatch> matches = hf_match(hf, rules, file, where);
  WeightTypes types;
  for (const HfMatch& match : matches) {
    if (match.is_quantized() && form == WeightForm::trainable) {
      throw Error(ErrorCode::unsupported,
                  where + ": the weights must be floats for training, got " + hf.quantization,
                  "use the model that was quantized, or `heed convert` this one to f32 first");
    }
    if (form == WeightForm::stored && hf_can_be_packed(*match.rule)) {
      types[match.rule->heed] = match.type;
    }
  }
  Parameters parameters(hf.config, types);
  for (const HfMatch& match : matches) load(match, hf.config, file, parameters, where);
  return parameters;
}

}  // namespace heed
