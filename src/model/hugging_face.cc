// Tensors between a file and Parameters, by the rules of hf_tensor_map.h.
#include "model/hugging_face.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/check.h"
#include "heed/error.h"
#include "kernels/convert.h"
#include "model/file_problems.h"
#include "model/hf_tensor_map.h"

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

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f64;
}

// A rule and the tensors found for it; none for an optional one that is absent.
struct Match {
  const HfTensorRule* rule;
  std::vector<const TensorView*> parts;
};

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
  Matcher(const HfConfig& hf, const TensorFile& file) : hf_(hf) {
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
          check(*tensor, rule.shapes[i]);
          match.parts.push_back(tensor);
        } else if (!rule.optional) {
          missing_.push_back(rule.written_prefix(hf_) + rule.parts[i]);
        }
      }
      if (match.parts.size() == rule.parts.size()) matches.push_back(std::move(match));
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
  const TensorView* find(const HfTensorRule& rule, const std::string& part) {
    for (const std::string& name : {rule.written_prefix(hf_) + part, rule.prefix + part, part}) {
      const auto found = by_name_.find(name);
      if (found == by_name_.end()) continue;
      used_.insert(found->second);
      return found->second;
    }
    return nullptr;
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
  std::map<std::string, const TensorView*> by_name_;
  std::set<const TensorView*> used_;
  std::vector<std::string> missing_, misshapen_;
};

// The matrix of a rule that does not lie in the file as it does here.
struct Rearranged {
  HfLayout layout;
  int64_t rows, cols;  // here; a vector is one column
  int64_t heads = 0;   // per_head

  // copy(here, there, count): positions of runs of elements that stay together.
  template <class Copy>
  void each_run(const Copy& copy) const {
    if (layout == HfLayout::transposed) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) copy(r * cols + c, c * rows + r, 1);
      }
      return;
    }
    const int64_t head_dim = rows / (3 * heads), run = head_dim * cols;
    for (int64_t part = 0; part < 3; ++part) {
      for (int64_t head = 0; head < heads; ++head) {
        copy((part * heads + head) * run, (head * 3 + part) * run, run);
      }
    }
  }
};

bool is_rearranged(HfLayout layout) {
  return layout == HfLayout::transposed || layout == HfLayout::per_head;
}

Rearranged rearranged(const HfTensorRule& rule, const ModelConfig& c) {
  const std::vector<int64_t>& shape = rule.shapes.front();
  const int64_t cols = shape.size() > 1 ? shape[1] : 1;
  const int heads = c.decoder_heads ? c.decoder_heads : c.heads;
  if (rule.layout == HfLayout::transposed) return {rule.layout, cols, shape[0]};
  return {rule.layout, shape[0], cols, heads};
}

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

// Copies a tensor piece by piece and gives the pieces' pages back, or a model would be in memory
// twice while it loads.
void copy_and_drop(const TensorView& tensor, const TensorFile& file, float* out) {
  constexpr int64_t kPiece = int64_t{1} << 21;
  const int64_t count = tensor.element_count();
  const size_t size = count > 0 ? tensor.bytes.size() / static_cast<size_t>(count) : 0;
  for (int64_t at = 0; at < count; at += kPiece) {
    const int64_t piece = std::min(kPiece, count - at);
    const auto bytes =
        tensor.bytes.subspan(static_cast<size_t>(at) * size, static_cast<size_t>(piece) * size);
    copy_as_f32({tensor.name, tensor.dtype, {piece}, bytes}, out + at);
    file.drop_pages();
  }
}

void load(const Match& match, const ModelConfig& c, const TensorFile& file, Parameters& parameters,
          const std::string& where) {
  const HfTensorRule& rule = *match.rule;
  if (rule.layout == HfLayout::sinusoids) return check_sinusoids(match, c, where);
  const std::span<float> values = parameters.values(rule.heed);
  if (is_rearranged(rule.layout)) {
    std::vector<float> there(values.size());
    copy_and_drop(*match.parts.front(), file, there.data());
    rearranged(rule, c).each_run([&](int64_t to, int64_t from, int64_t count) {
      std::copy_n(there.data() + from, count, values.data() + to);
    });
  } else {
    int64_t at = 0;
    for (const TensorView* part : match.parts) {
      copy_and_drop(*part, file, values.data() + at);
      at += part->element_count();
    }
    HEED_CHECK(at == static_cast<int64_t>(values.size()), "parts of " + rule.heed);
  }
  check_numbers(values, rule, where);
}

// Collects tensors for a file, converted where they must be.
class Collector {
 public:
  Collector(const HfConfig& hf, DType dtype) : hf_(hf), dtype_(dtype) {}

  void add(const HfTensorRule& rule, std::span<const float> values) {
    if (!is_rearranged(rule.layout)) {
      int64_t at = 0;
      for (size_t i = 0; i < rule.parts.size(); ++i) {
        const int64_t size = checked_element_count(rule.shapes[i]).value();
        add_part(rule, i, values.subspan(static_cast<size_t>(at), static_cast<size_t>(size)));
        at += size;
      }
      return;
    }
    float* there = own(values.size());
    rearranged(rule, hf_.config).each_run([&](int64_t from, int64_t to, int64_t count) {
      std::copy_n(values.data() + from, count, there + to);
    });
    add_part(rule, 0, {there, values.size()});
  }

  void add_table(const HfTensorRule& rule) {
    const std::vector<float> table = sinusoids_in_file(hf_.config);
    float* values = own(table.size());
    std::copy(table.begin(), table.end(), values);
    add_part(rule, 0, {values, table.size()});
  }

  HfTensors take() { return std::move(tensors_); }

 private:
  float* own(size_t floats) {
    tensors_.owned.emplace_back(floats * sizeof(float));
    return reinterpret_cast<float*>(tensors_.owned.back().data());
  }

  void add_part(const HfTensorRule& rule, size_t i, std::span<const float> values) {
    std::span<const std::byte> bytes = std::as_bytes(values);
    if (dtype_ != DType::f32) {
      tensors_.owned.emplace_back(values.size() * sizeof(uint16_t));
      auto* narrow = reinterpret_cast<uint16_t*>(tensors_.owned.back().data());
      const auto convert = dtype_ == DType::f16 ? kernels::f32_to_f16 : kernels::f32_to_bf16;
      convert(values.data(), narrow, static_cast<int64_t>(values.size()));
      bytes = tensors_.owned.back();
    }
    tensors_.views.push_back(
        {rule.written_prefix(hf_) + rule.parts[i], dtype_, rule.shapes[i], bytes});
  }

  const HfConfig& hf_;
  DType dtype_;
  HfTensors tensors_;
};

}  // namespace

Parameters hf_load(const HfConfig& hf, const TensorFile& file, const std::string& where) {
  const std::vector<HfTensorRule> rules = hf_tensor_rules(hf);
  Matcher matcher(hf, file);
  const std::vector<Match> matches = matcher.match(rules);
  matcher.throw_if_different(where);
  Parameters parameters(hf.config);
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
