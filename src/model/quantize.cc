#include "model/quantize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "base/check.h"
#include "heed/error.h"

namespace heed {
namespace {

using kernels::WeightTypeInfo;

// f32 is what a model has before.
bool can_be_quantized_to(const WeightTypeInfo& type) { return type.type != WeightType::f32; }

// Squared norms of a row's rounding error and of the row.
struct Loss {
  double error = 0, whole = 0;
};

// Quantizes and packs a matrix, rows split among the threads; returns |W - Ŵ| / |W|.
double pack_matrix(ThreadPool& pool, std::span<const float> values, const PackedWeight& to) {
  std::vector<Loss> losses(static_cast<size_t>(to.n));
  constexpr int64_t kGrain = 48;
  pool.parallel_for(to.n, kGrain, [&](int64_t begin, int64_t end) {
    std::vector<std::byte> numbers(
        static_cast<size_t>(kernels::quantized_row_bytes(to.type, to.k)));
    std::vector<float> scales(static_cast<size_t>(kernels::quantized_row_scales(to.type, to.k)));
    std::vector<float> again(static_cast<size_t>(to.k));
    for (int64_t row = begin; row < end; ++row) {
      const float* from = values.data() + row * to.k;
      kernels::quantize_rows(to.type, {from, 1, to.k}, numbers.data(), scales.data());
      kernels::pack_rows(to, row, 1, numbers.data(), scales.data());
      kernels::dequantize_row(to.type, numbers.data(), scales.data(), to.k, again.data());
      Loss& loss = losses[static_cast<size_t>(row)];
      for (int64_t i = 0; i < to.k; ++i) {
        const double lost = static_cast<double>(from[i]) - again[static_cast<size_t>(i)];
        loss.error += lost * lost;
        loss.whole += static_cast<double>(from[i]) * from[i];
      }
    }
  });
  Loss sum;
  for (const Loss& loss : losses) sum.error += loss.error, sum.whole += loss.whole;
  return sum.whole > 0 ? std::sqrt(sum.error / sum.whole) : 0;
}

// Numbers beyond the range of the type would become infinite.
void check_range(std::span<const float> values, WeightType type, const std::string& name) {
  const float largest = kernels::weight_type(type).largest;
  if (std::all_of(values.begin(), values.end(), [&](float x) { return std::abs(x) <= largest; })) {
    return;
  }
  throw Error(ErrorCode::invalid_argument,
              name + " must have finite numbers within the range of " + weight_type_name(type),
              "check whether training diverged");
}

// The first, the middle and the last ones: different kinds of layers.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  const size_t count = std::min(kShown, names.size());
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = count < 2 ? 0 : i * (names.size() - 1) / (count - 1);
    text += (i == 0 ? "" : ", ") + names[at];
  }
  return text + (count < names.size() ? " and others" : "");
}

}  // namespace

const char* weight_type_name(WeightType type) { return kernels::weight_type(type).name; }

WeightType weight_type_from_name(std::string_view name) {
  const WeightTypeInfo* type = kernels::find_weight_type(name);
  if (type && can_be_quantized_to(*type)) return type->type;
  throw Error(
      ErrorCode::invalid_argument,
      "the weight type must be " + weight_type_choices() + ", got '" + std::string(name) + "'",
      "int8 is the usual choice; docs/quantization.md compares them");
}

std::string weight_type_choices() { return kernels::weight_type_list(can_be_quantized_to); }

std::string weight_type_help() {
  std::string text;
  for (const WeightTypeInfo& type : kernels::weight_types()) {
    if (can_be_quantized_to(type)) text += std::string(type.name) + ": " + type.description + ".\n";
  }
  return text;
}

WeightType main_type(const Parameters& parameters) {
  std::map<WeightType, int64_t> sizes;
  for (const ParameterSpec& spec : parameters.specs()) {
    sizes[parameters.type(spec.name)] += spec.size();
  }
  const auto most = std::max_element(
      sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == sizes.end() ? WeightType::f32 : most->first;
}

NameFilter::NameFilter(const std::string& pattern) {
  if (pattern.empty()) return;
  try {
    pattern_.emplace(pattern, std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    throw Error(ErrorCode::invalid_argument,
                "'" + pattern + "' is no regular expression: " + error.what(),
                "for example: 'output|\\.0\\.' or '^decoder\\.11\\.'");
  }
}

bool NameFilter::matches(const std::string& name) const {
  return pattern_ && std::regex_search(name, *pattern_);
}

Quantized quantize(const Network& from, const QuantizeRules& rules) {
  const Parameters& old = from.parameters();
  HEED_CHECK(!old.is_packed(), "quantize: the network is packed already");
  WeightTypes types;
  std::vector<std::string> names;
  size_t wide = 0;
  for (const ParameterSpec& spec : old.specs()) {
    if (!can_be_packed(spec)) continue;
    const bool is_wide = rules.keep_wide.matches(spec.name);
    types[spec.name] = is_wide ? WeightType::f16 : rules.type;
    names.push_back(spec.name);
    wide += is_wide ? 1 : 0;
  }
  if (wide == names.size()) {
    throw Error(ErrorCode::invalid_argument, "keep_wide must not match every matrix",
                "choose a narrower regular expression");
  }
  if (wide == 0 && !rules.keep_wide.is_empty()) {
    throw Error(ErrorCode::invalid_argument, "keep_wide must match the name of a matrix",
                "there are " + some_of(names));
  }
  Parameters parameters(from.config(), types);
  std::vector<QuantizedLayer> layers;
  for (const ParameterSpec& spec : old.specs()) {
    const std::span<const float> values = old.values(spec.name);
    const WeightType type = parameters.type(spec.name);
    if (!parameters.is_packed(spec.name)) {
      std::ranges::copy(values, parameters.values(spec.name).begin());
      continue;
    }
    check_range(values, type, spec.name);
    const PackedWeight packed = parameters.packed(spec.name);
    layers.push_back({.name = spec.name,
                      .type = weight_type_name(type),
                      .rows = spec.rows,
                      .cols = spec.cols,
                      .bytes = kernels::packed_bytes(type, spec.rows, spec.cols),
                      .relative_error = pack_matrix(rules.pool, values, packed)});
  }
  HfConfig hf = from.hugging_face();
  const WeightTypeInfo& type = kernels::weight_type(rules.type);
  hf.quantization = type.is_named_in_config ? type.name : "";
  return {Network(std::move(hf), std::move(parameters)), std::move(layers)};
}

}  // namespace heed
