// JSON values into fields and back: each reader fills the field, or says what was expected.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text/json_depth.h"
#include "heed/enum_names.h"

namespace heed {

using Json = nlohmann::ordered_json;

template <class Enum>
requires std::is_enum_v<Enum> Json value_json(Enum value) { return std::string(name_of(value)); }
// The shortest decimal that is this float again: 1e-05 and not 9.999999747378752e-06.
inline Json value_json(float value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double decimal = value;
  std::from_chars(text.data(), end, decimal);
  return decimal;
}
template <class T>
requires(!std::is_enum_v<T> && !std::is_same_v<T, float>) Json value_json(const T& value) {
  return value;
}

// JSON from a file, as an object; null when it is none, or nested deeper than any config.
inline Json parse_object(const std::string& text) {
  if (is_too_deep_json(text)) return nullptr;
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json();
}

// An integer from an object that Heed has written. Throws Json::exception for anything else: get()
// would make an int64_t of any number, and for 1e66 that is undefined.
inline int64_t whole_at(const Json& json, const char* key) {
  return json.at(key).get_ref<const Json::number_integer_t&>();
}

// Each returns what was expected, or nothing when the field is filled.
template <class Enum>
requires std::is_enum_v<Enum> std::string read_value(const Json& json, Enum& field) {
  const auto found =
      json.is_string() ? from_name<Enum>(json.get<std::string>()) : std::optional<Enum>{};
  if (!found) return "one of " + choices_of<Enum>();
  field = *found;
  return {};
}
inline std::string read_value(const Json& json, bool& field) {
  if (!json.is_boolean()) return "true or false";
  field = json.get<bool>();
  return {};
}
inline std::string read_value(const Json& json, float& field) {
  if (!json.is_number()) return "a number";
  const auto value = json.get<double>();
  if (!(std::abs(value) <= double{std::numeric_limits<float>::max()})) {
    return "a number between -3.4e38 and 3.4e38";
  }
  field = static_cast<float>(value);
  return {};
}
template <class Int>
requires(std::is_integral_v<Int> && !std::is_same_v<Int, bool>) std::string
    read_value(const Json& json, Int& field) {
  if (!json.is_number_integer()) return "a whole number";
  const auto value = json.get<int64_t>();
  const bool wraps = json.is_number_unsigned() && value < 0;
  if (wraps || !std::in_range<Int>(value)) {
    return "a whole number between " + std::to_string(std::numeric_limits<Int>::min()) + " and " +
           std::to_string(std::numeric_limits<Int>::max());
  }
  field = static_cast<Int>(value);
  return {};
}
inline std::string read_value(const Json& json, std::vector<int64_t>& field) {
  std::vector<int64_t> values;
  if (!json.is_array()) return "a list of whole numbers";
  for (const Json& element : json) {
    int64_t value = 0;
    if (!read_value(element, value).empty()) return "a list of whole numbers";
    values.push_back(value);
  }
  field = std::move(values);
  return {};
}

}  // namespace heed
