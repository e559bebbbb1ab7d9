#include "model/hugging_face/hf_tensor_map.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

#include "base/check.h"

namespace heed {
namespace {

// "encoder.12.self.norm.gamma" → "encoder.{i}.self.norm.gamma", and 12.
struct LayerName {
  std::string pattern;
  std::string layer;
};
LayerName layer_name(const std::string& name) {
  const size_t begin = name.find('.') + 1;
  size_t end = begin;
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) ++end;
  if (begin == 0 || end == begin || end == name.size() || name[end] != '.') return {name, ""};
  return {name.substr(0, begin) + "{i}" + name.substr(end), name.substr(begin, end - begin)};
}

std::string in_layer(std::string pattern, const std::string& layer) {
  const size_t at = pattern.find("{i}");
  if (at != std::string::npos) pattern.replace(at, 3, layer);
  return pattern;
}

bool is_vector(const std::string& name) {
  return name.ends_with(".bias") || name.ends_with(".gamma") || name.ends_with(".beta");
}

std::vector<int64_t> shape_in_file(const ParameterSpec& spec, int64_t size, HfLayout layout) {
  if (layout == HfLayout::one_row) return {1, size};
  if (is_vector(spec.name)) return {size};
  if (layout == HfLayout::transposed) return {spec.cols, size};
  return {size, spec.cols};
}

// Rows of each part of a stacked weight; a bias is stacked as its matrix is.
std::vector<int64_t> part_sizes(const ParameterSpec& spec,
                                const std::map<std::string, const ParameterSpec*>& specs,
                                size_t parts) {
  const int64_t whole = is_vector(spec.name) ? spec.cols : spec.rows;
  if (parts == 1) return {whole};
  const ParameterSpec* stacked = &spec;
  if (spec.name.ends_with(".bias")) {
    stacked = specs.at(spec.name.substr(0, spec.name.size() - 4) + "weight");
  }
  HEED_CHECK(stacked->parts.size() == parts, "parts of " + spec.name);
  return stacked->parts;
}

// Whether a weight reads the residual stream (its columns), writes it (its rows), or neither.
HfReordered width_side(const std::string& name) {
  for (const char* reads :
       {".tokens", ".qkv.weight", ".q.weight", ".kv.weight", ".in.weight", "output.weight"}) {
    if (name.ends_with(reads)) return HfReordered::cols;
  }
  for (const char* writes : {".out.weight", ".out.bias", ".gamma", ".beta"}) {
    if (name.ends_with(writes)) return HfReordered::rows;
  }
  return HfReordered::no;
}

std::vector<HfTensorRule> heed_rules(const ModelConfig& config) {
  std::vector<HfTensorRule> rules;
  for (const ParameterSpec& spec : declare(config)) {
    const int64_t size = is_vector(spec.name) ? spec.cols : spec.rows;
    rules.push_back({.heed = spec.name,
                     .parts = {spec.name},
                     .shapes = {shape_in_file(spec, size, HfLayout::plain)}});
  }
  return rules;
}

const HfArchitecture& architecture(const HfConfig& hf) {
  for (const HfArchitecture& a : hf_architectures()) {
    if (hf.model_type == a.model_type) return a;
  }
  throw Error(ErrorCode::unsupported, "no architecture " + hf.model_type);
}

}  // namespace

std::vector<HfTensorRule> hf_tensor_rules(const HfConfig& hf) {
  const ModelConfig& c = hf.config;
  if (hf.model_type == "heed") return heed_rules(c);
  const HfArchitecture& a = architecture(hf);
  HfNames names;
  a.names(names, c);

  std::vector<HfTensorRule> rules;
  std::map<std::string, const HfName*> by_pattern;
  for (const HfName& row : names.rows()) {
    if (row.layout != HfLayout::sinusoids) {
      by_pattern[row.heed] = &row;
    } else if (c.position == Position::sinusoidal) {
      rules.push_back({.heed = "",
                       .parts = row.parts,
                       .shapes = {{c.max_positions, c.width}},
                       .layout = row.layout,
                       .optional = true,
                       .prefix = a.prefix});
    }
  }
  const std::vector<ParameterSpec> specs = declare(c);
  std::map<std::string, const ParameterSpec*> by_name;
  for (const ParameterSpec& spec : specs) by_name[spec.name] = &spec;
  for (const ParameterSpec& spec : specs) {
    const LayerName name = layer_name(spec.name);
    const auto found = by_pattern.find(name.pattern);
    HEED_CHECK(found != by_pattern.end(), "no name for " + spec.name + " in " + a.model_type);
    const HfName& row = *found->second;
    HfTensorRule rule{.heed = spec.name,
                      .parts = {},
                      .shapes = {},
                      .layout = row.layout,
                      .optional = row.optional,
                      .other_names = row.other_names,
                      .prefix = row.in_head ? "" : a.prefix};
    // Sines come first in every Hugging Face architecture.
    if (c.position == Position::sinusoidal && c.sinusoid_layout == SinusoidLayout::interleaved) {
      rule.reordered = width_side(spec.name);
    }
    for (const std::string& part : row.parts) rule.parts.push_back(in_layer(part, name.layer));
    for (const int64_t size : part_sizes(spec, by_name, row.parts.size())) {
      rule.shapes.push_back(shape_in_file(spec, size, row.layout));
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::vector<std::string> hf_tensor_names(const HfConfig& hf) {
  std::vector<std::string> names;
  for (const HfTensorRule& rule : hf_tensor_rules(hf)) {
    for (const std::string& part : rule.parts) names.push_back(rule.written_prefix(hf) + part);
  }
  return names;
}

}  // namespace heed
