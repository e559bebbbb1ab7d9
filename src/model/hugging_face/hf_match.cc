#include "model/hugging_face/hf_match.h"

#include <algorithm>
#include <map>
#include <set>

#include "heed/error.h"
#include "kernels/matmul/weight_types.h"
#include "model/files/file_problems.h"
#include "model/hugging_face/hf_architectures.h"
#include "model/hugging_face/hf_layout.h"

namespace heed {
namespace {

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

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f64;
}

bool has_dtype_of(const TensorView& tensor, const WeightTypeInfo& type) {
  return tensor.dtype == dtype_from_name(type.dtype);
}

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

  std::vector<HfMatch> match(const std::vector<HfTensorRule>& rules) {
    std::vector<HfMatch> matches;
    for (const HfTensorRule& rule : rules) {
      HfMatch match{&rule, {}};
      for (size_t i = 0; i < rule.parts.size(); ++i) {
        const TensorView* tensor = find(rule, rule.parts[i]);
        for (size_t k = 0; !tensor && k < rule.other_names.size(); ++k) {
          tensor = find(rule, rule.other_names[k]);
        }
        if (tensor) {
          if (is_quantized(*tensor) && hf_can_be_packed(rule)) {
            add_quantized(*tensor, *named_, hf_part_shape(rule, i), match);
          } else {
            check_float(*tensor, rule.shapes[i]);
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
  void add_quantized(const TensorView& tensor, const WeightTypeInfo& type, HfPartShape shape,
                     HfMatch& match) {
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
    expect(*found->second, hf_scale_dtype(type), hf_scale_shape(type, shape.rows, shape.cols));
    match.scales.push_back(found->second);
    match.type = type.type;
  }

  // All parts of a matrix are of one type.
  void finish_type(HfMatch& match) {
    if (match.is_quantized()) {
      for (const TensorView* part : match.parts) {
        if (is_quantized(*part)) continue;
        misshapen_.push_back(part->name + " is of " + name(part->dtype) +
                             ", expected the type of the other parts");
      }
      return;
    }
    if (!hf_can_be_packed(*match.rule)) return;
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

  void check_float(const TensorView& tensor, const std::vector<int64_t>& shape) {
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

}  // namespace

std::vector<HfMatch> hf_match(const HfConfig& hf, const std::vector<HfTensorRule>& rules,
                              const TensorFile& file, const std::string& where) {
  Matcher matcher(hf, file);
  std::vector<HfMatch> matches = matcher.match(rules);
  matcher.throw_if_different(where);
  return matches;
}

}  // namespace heed
