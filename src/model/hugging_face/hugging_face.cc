// Tensors between a file and Parameters, by the rules of hf_tensor_map.h.
#include "model/hugging_face/hugging_face.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/check.h"
#include "heed/error.h"
#include "kernels/rows/convert.h"
#include "model/files/file_problems.h"
#include "model/hugging_face/hf_tensor_map.h"

namespace heed {
namespace {

// Marian's and Pegasus' table, in their arithmetic: sines in the first half, cosines in the second.
std::vector<float> sinusoids_in_file(const ModelConfig& c) {
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

// `*` is any text.
bool matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= text.size(); ++at) {
    if (matches(rest, text.substr(at))) return true;
  }
  return false;
}

// The oldest files call a norm's weights gamma and beta.
std::string modern_name(const std::string& name) {
  if (name.ends_with("LayerNorm.gamma")) return name.substr(0, name.size() - 5) + "weight";
  if (name.ends_with("LayerNorm.beta")) return name.substr(0, name.size() - 4) + "bias";
  return name;
}

using kernels::WeightTypeInfo;

// The tensor of scales beside a tensor of quantized rows.
DType scale_dtype(const WeightTypeInfo& type) {
  return type.scale_bytes == sizeof(float) ? DType::f32 : DType::f16;
}
std::vector<int64_t> scale_shape(const WeightTypeInfo& type, int64_t rows, int64_t cols) {
  if (type.scale_inputs == 0) return {rows};
  return {rows, type.row_scales(cols)};
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f64;
}

// A rule and the tensors found for it; none for an optional one that is absent.
struct Match {
  const HfTensorRule* rule;
  std::vector<const TensorView*> parts;
  std::vector<const TensorView*> scales{};  // of quantized parts
  WeightType type = WeightType::f32;        // in which it can stay
  bool is_quantized() const { return !kernels::weight_type(type).is_float; }
};

// A part as a matrix [out, in], whichever way it lies in the file.
struct PartShape {
  int64_t rows, cols;
};
PartShape part_shape(const HfTensorRule& rule, size_t part) {
  const std::vector<int64_t>& shape = rule.shapes[part];
  if (shape.size() != 2) return {1, shape.front()};
  const bool transposed = rule.layout == HfLayout::transposed;
  return {shape[transposed ? 1 : 0], shape[transposed ? 0 : 1]};
}

bool can_be_packed(const HfTensorRule& rule) {
  ParameterSpec spec{.name = rule.heed};
  for (size_t i = 0; i < rule.shapes.size(); ++i) {
    spec.rows += part_shape(rule, i).rows, spec.cols = part_shape(rule, i).cols;
  }
  return heed::can_be_packed(spec);
}

bool has_dtype_of(const TensorView& tensor, const WeightTypeInfo& type) {
  return tensor.dtype == dtype_from_name(type.dtype);
}
constexpr const char* kScaleSuffix = ".scale";

// Names and a count, for a message: "3 tensors are missing: a, b, c".
void append_list(std::string& message, const std::vector<std::string>& list, const char* what) {
  if (list.empty()) return;
  constexpr size_t kShown = 10;
  message += (message.empty() ? "" : "; ") + std::to_string(list.size()) +
             (list.size() == 1 ? " tensor " : " tensors ") + what + ": ";
  for (size_t i = 0; i < std::min(kShown, list.size()); ++i) message += (i ? ", " : "") + list[i];
  if (list.size() > kShown) message += ", …";
}

class Matcher {
 public:
  Matcher(const HfConfig& hf, const TensorFile& file)
      : hf_(hf), named_(kernels::find_weight_type(hf.quantization)) {
    for (const TensorView& tensor : file.tensors()) by_name_[modern_name(tensor.name)] = &tensor;
  }

  std::vector<Match> match(const std::vector<HfTensorRule>& rules) {
    std::vector<Match> matches;
    for (const HfTensorRule& rule : rules) {
      Match match{&rule, {}};
      for (size_t i = 0; i < rule.parts.size(); ++i) {
        const TensorView* tensor = find(rule, rule.parts[i]);
        for (size_t k = 0; !tensor && k < rule.other_names.size(); ++k) {
          tensor = find(rule, rule.other_names[k]);
        }
        if (tensor) {
          if (is_quantized(*tensor) && can_be_packed(rule)) {
            add_quantized(*tensor, *named_, part_shape(rule, i), match);
          } else {
            check(*tensor, rule.shapes[i]);
          }
          match.parts.push_back(tensor);
        } else if (!rule.optional) {
          missing_.push_back(rule.written_prefix(hf_) + rule.parts[i]);
        }
      }
      if (match.parts.size() != rule.parts.size()) continue;
      finish_type(match);
      matches.push_back(std::move(match));
    }
    return matches;
  }

  void throw_if_different(const std::string& where) {
    std::vector<std::string> extra;
    for (const auto& [name, tensor] : by_name_) {
      if (!used_.contains(tensor) && !is_ignored(name)) extra.push_back(heed::in_quotes(name));
    }
    std::string message;
    append_list(message, missing_, "missing");
    append_list(message, misshapen_, "not as config.json says");
    append_list(message, extra, "unknown");
    if (message.empty()) return;
    throw Error(ErrorCode::corrupt_file, where + ": " + message,
                "the tensors and config.json must be of the same " + hf_.architecture);
  }

 private:
  bool is_quantized(const TensorView& tensor) const {
    return named_ && !named_->is_float && has_dtype_of(tensor, *named_);
  }

  const TensorView* find(const HfTensorRule& rule, const std::string& part) {
    for (const std::string& name : {rule.written_prefix(hf_) + part, rule.prefix + part, part}) {
      const auto found = by_name_.find(name);
      if (found == by_name_.end()) continue;
      used_.insert(found->second);
      return found->second;
    }
    return nullptr;
  }

  // Quantized tensors hold rows as Heed has them: [out, in], in the order of its outputs.
  void add_quantized(const TensorView& tensor, const WeightTypeInfo& type, PartShape shape,
                     Match& match) {
    expect(tensor, tensor.dtype, {shape.rows, type.row_bytes(shape.cols)});
    if (shape.cols > type.max_inputs) {
      misshapen_.push_back(tensor.name + " has more than " + std::to_string(type.max_inputs) +
                           " inputs, too many for " + type.name);
    }
    const auto found = by_name_.find(modern_name(tensor.name) + kScaleSuffix);
    if (found == by_name_.end()) {
      missing_.push_back(tensor.name + kScaleSuffix);
      return;
    }
    used_.insert(found->second);
    expect(*found->second, scale_dtype(type), scale_shape(type, shape.rows, shape.cols));
    match.scales.push_back(found->second);
    match.type = type.type;
  }

  // All parts of a matrix are of one type.
  void finish_type(Match& match) {
    if (match.is_quantized()) {
      for (const TensorView* part : match.parts) {
        if (is_quantized(*part)) continue;
        misshapen_.push_back(part->name + " is of " + name(part->dtype) +
                             ", another type than what it is joined with");
      }
      return;
    }
    if (!can_be_packed(*match.rule)) return;
    for (const WeightTypeInfo& type : kernels::weight_types()) {
      if (!type.is_float || (type.is_named_in_config && &type != named_)) continue;
      const auto has_dtype = [&](const TensorView* part) { return has_dtype_of(*part, type); };
      if (std::all_of(match.parts.begin(), match.parts.end(), has_dtype)) match.type = type.type;
    }
  }

  void expect(const TensorView& tensor, DType dtype, const std::vector<int64_t>& shape) {
    if (tensor.dtype == dtype && tensor.shape == shape) return;
    misshapen_.push_back(tensor.name + " is " + name(tensor.dtype) + " " +
                         shape_text(tensor.shape) + ", expected " + name(dtype) + " " +
                         shape_text(shape));
  }

  void check(const TensorView& tensor, const std::vector<int64_t>& shape) {
    if (tensor.shape != shape) {
      misshapen_.push_back(tensor.name + " is " + shape_text(tensor.shape) + ", expected " +
                           shape_text(shape));
    } else if (!is_float(tensor.dtype)) {
      misshapen_.push_back(tensor.name + " is of " + name(tensor.dtype) + ", expected floats");
    }
  }

  bool is_ignored(const std::string& tensor) const {
    for (const HfArchitecture& a : hf_architectures()) {
      if (hf_.model_type != a.model_type) continue;
      return std::any_of(a.ignored_tensors.begin(), a.ignored_tensors.end(),
                         [&](const std::string& pattern) { return matches(pattern, tensor); });
    }
    return false;
  }

  const HfConfig& hf_;
  const WeightTypeInfo* named_;  // the type that config.json names, or null
  std::map<std::string, const TensorView*> by_name_;
  std::set<const TensorView*> used_;
  std::vector<std::string> missing_, misshapen_;
};

// A weight that does not lie in the file as it does here.
class Rearranged {
 public:
  Rearranged(const HfTensorRule& rule, const ModelConfig& c)
      : layout_(rule.layout),
        reordered_(rule.reordered),
        width_(c.width),
        heads_(c.stack(c.has_decoder() ? Side::decoder : Side::encoder).heads) {
    const std::vector<int64_t>& shape = rule.shapes.front();
    cols_ = shape.size() > 1 ? shape[1] : 1;  // a vector is one column
    rows_ = 0;
    for (const auto& part : rule.shapes) rows_ += part.front();
  }

  // Whether elements also move from row to row.
  static bool moves_rows(const HfTensorRule& rule) {
    return rule.layout == HfLayout::transposed || rule.layout == HfLayout::per_head ||
           rule.reordered == HfReordered::rows;
  }
  static bool is_needed(const HfTensorRule& rule) {
    return rule.layout == HfLayout::transposed || rule.layout == HfLayout::per_head ||
           rule.reordered != HfReordered::no;
  }

  // Where the element at this place of the file is here.
  int64_t here(int64_t there) const {
    const int64_t row = there / cols_, col = there % cols_;
    if (layout_ == HfLayout::transposed) return col * rows_ + row;
    if (layout_ == HfLayout::per_head) {
      const int64_t head_dim = rows_ / (3 * heads_);
      const int64_t head = row / (3 * head_dim), part = row / head_dim % 3;
      return ((part * heads_ + head) * head_dim + row % head_dim) * cols_ + col;
    }
    if (reordered_ == HfReordered::rows) return in_turn(row) * cols_ + col;
    return row * cols_ + in_turn(col);
  }

 private:
  // From all sines, then all cosines, to sine and cosine in turn.
  int64_t in_turn(int64_t i) const { return 2 * i < width_ ? 2 * i : 2 * i - width_ + 1; }

  HfLayout layout_;
  HfReordered reordered_;
  int64_t width_, heads_, rows_ = 0, cols_ = 0;  // rows and columns in the file
};

void check_numbers(std::span<const float> values, const HfTensorRule& rule,
                   const std::string& where) {
  if (std::none_of(values.begin(), values.end(), [](float x) { return std::isnan(x); })) return;
  throw Error(ErrorCode::corrupt_file, where + ": " + rule.parts.front() + " contains NaN",
              "the model diverged in training, or the file is damaged");
}

// A table in the file that is another than the formula's would be lost.
void check_sinusoids(const Match& match, const ModelConfig& c, const std::string& where) {
  const std::vector<float> expected = sinusoids_in_file(c);
  std::vector<float> found(expected.size());
  copy_as_f32(*match.parts.front(), found.data());
  constexpr float kRounding = 1e-2f;  // of a table stored in bf16
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::abs(found[i] - expected[i]) <= kRounding) continue;
    throw Error(ErrorCode::unsupported,
                where + ": " + match.parts.front()->name + " is not the table of sinusoids");
  }
}

// Calls use(piece, at) for the elements of a tensor, from its first on, and gives the pages of what
// was used back, or a model would be in memory twice while it loads.
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

// A tensor that is floats in the file.
void load_floats(const Match& match, const ModelConfig& c, const TensorFile& file,
                 std::span<float> values, const std::string& where) {
  const HfTensorRule& rule = *match.rule;
  const bool is_rearranged = Rearranged::is_needed(rule);
  const Rearranged order(rule, c);
  std::vector<float> numbers;
  int64_t first = 0;
  for (const TensorView* part : match.parts) {
    each_piece(*part, file, [&](const TensorView& piece, int64_t at) {
      if (!is_rearranged) return copy_as_f32(piece, values.data() + first + at);
      numbers.resize(static_cast<size_t>(piece.element_count()));
      copy_as_f32(piece, numbers.data());
      for (size_t i = 0; i < numbers.size(); ++i) {
        values[static_cast<size_t>(order.here(first + at + static_cast<int64_t>(i)))] = numbers[i];
      }
    });
    first += part->element_count();
  }
  HEED_CHECK(first == static_cast<int64_t>(values.size()), "parts of " + rule.heed);
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

// A matrix of floats that is packed as a type of floats. Numbers that have that type in the file are
// converted to f32 and back without a change.
void load_packed_floats(const Match& match, const ModelConfig& c, const TensorFile& file,
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
  if (Rearranged::moves_rows(rule)) {
    floats.resize(static_cast<size_t>(to.n * to.k));
    load_floats(match, c, file, floats, where);
    return pack(0, to.n, floats.data());
  }
  const bool is_rearranged = Rearranged::is_needed(rule);
  const Rearranged order(rule, c);
  int64_t row = 0;
  for (size_t i = 0; i < match.parts.size(); ++i) {
    const TensorView& part = *match.parts[i];
    each_rows(
        part, part_shape(rule, i).rows, file,
        [&](const std::byte* bytes, int64_t first, int64_t rows) {
          const auto size = static_cast<size_t>(rows * to.k);
          floats.resize(size);
          const size_t part_bytes = size * element_bytes(part.dtype);
          copy_as_f32({part.name, part.dtype, {rows, to.k}, {bytes, part_bytes}}, floats.data());
          if (is_rearranged) {
            ordered.resize(size);
            for (size_t e = 0; e < size; ++e) {
              ordered[static_cast<size_t>(order.here(static_cast<int64_t>(e)))] = floats[e];
            }
          }
          pack(row + first, rows, is_rearranged ? ordered.data() : floats.data());
        });
    row += part_shape(rule, i).rows;
  }
}

// A matrix of integers and scales: use(row, rows, numbers, scales) for the whole of it.
template <class Use>
void each_quantized_rows(const Match& match, const TensorFile& file, const std::string& where,
                         const Use& use) {
  int64_t row = 0;
  for (size_t i = 0; i < match.parts.size(); ++i) {
    const PartShape shape = part_shape(*match.rule, i);
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

void load(const Match& match, const ModelConfig& c, const TensorFile& file, Parameters& parameters,
          const std::string& where) {
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
    const int64_t k = part_shape(rule, 0).cols;
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

// Collects tensors for a file, converted where they must be.
class Collector {
 public:
  Collector(const HfConfig& hf, DType dtype) : hf_(hf), dtype_(dtype) {}

  void add(const HfTensorRule& rule, std::span<const float> values) { add(rule, values, dtype_); }

  // A packed weight, as what it is.
  void add_packed(const HfTensorRule& rule, const Parameters& parameters) {
    const PackedWeight w = parameters.packed(rule.heed);
    const WeightTypeInfo& type = kernels::weight_type(w.type);
    if (type.is_float) {
      const std::vector<float> floats = parameters.floats(rule.heed);
      const std::span<float> kept{own(floats.size()), floats.size()};
      std::ranges::copy(floats, kept.begin());
      return add(rule, kept, w.type == WeightType::f32 ? dtype_ : dtype_from_name(type.dtype));
    }
    int64_t row = 0;
    for (size_t i = 0; i < rule.parts.size(); ++i) {
      const int64_t rows = part_shape(rule, i).rows;
      add_quantized(rule.written_prefix(hf_) + rule.parts[i], w, row, rows);
      row += rows;
    }
  }

  void add(const HfTensorRule& rule, std::span<const float> values, DType dtype) {
    if (Rearranged::is_needed(rule)) {
      const Rearranged order(rule, hf_.config);
      const std::span<float> there{own(values.size()), values.size()};
      for (size_t i = 0; i < there.size(); ++i) {
        there[i] = values[static_cast<size_t>(order.here(static_cast<int64_t>(i)))];
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
    const WeightTypeInfo& type = kernels::weight_type(w.type);
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
    const DType dtype = scale_dtype(type);
    std::vector<std::byte>& stored = tensors_.owned.emplace_back(count * element_bytes(dtype));
    if (dtype == DType::f32) {
      std::memcpy(stored.data(), scales.data(), stored.size());
    } else {
      kernels::f32_to_f16(scales.data(), reinterpret_cast<uint16_t*>(stored.data()),
                          static_cast<int64_t>(count));
    }
    tensors_.views.push_back({tensor + kScaleSuffix, dtype, scale_shape(type, rows, w.k), stored});
  }

  void add_table(const HfTensorRule& rule) {
    const std::vector<float> table = sinusoids_in_file(hf_.config);
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

Parameters hf_load(const HfConfig& hf, const TensorFile& file, const std::string& where,
                   WeightForm form) {
  const std::vector<HfTensorRule> rules = hf_tensor_rules(hf);
  Matcher matcher(hf, file);
  const std::vector<Match> matches = matcher.match(rules);
  matcher.throw_if_different(where);
  WeightTypes types;
  for (const Match& match : matches) {
    if (match.is_quantized() && form == WeightForm::trainable) {
      throw Error(ErrorCode::unsupported,
                  where + ": the weights are " + hf.quantization + ", which is for inference alone",
                  "use the model that was quantized, or `heed convert` this one to f32 first");
    }
    if (form == WeightForm::stored && can_be_packed(*match.rule)) {
      types[match.rule->heed] = match.type;
    }
  }
  Parameters parameters(hf.config, types);
  for (const Match& match : matches) load(match, hf.config, file, parameters, where);
  return parameters;
}

HfTensors hf_tensors(const HfConfig& hf, const Parameters& parameters, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) {
    throw Error(ErrorCode::invalid_argument,
                std::string("tensors cannot be written as ") + name(dtype), "use f32, f16 or bf16");
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
