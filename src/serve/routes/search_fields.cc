#include "serve/routes/search_fields.h"

#include <algorithm>
#include <type_traits>

namespace heed::serve {
namespace {

// What a server allows may be less than what the library does.
double server_max(const OptionInfo& info, const FieldLimits& limits) {
  constexpr double kMaxTemperature = 2;  // OpenAI's
  constexpr double kMaxStopStrings = 16;
  const std::string_view name = info.name;
  if (name == "beam" || name == "nbest") return static_cast<double>(limits.answers);
  if (name == "max_new_tokens") return static_cast<double>(limits.new_tokens);
  if (name == "temperature") return kMaxTemperature;
  if (name == "stop") return kMaxStopStrings;
  return info.max;
}

// Reads or describes one field; returns whether the request has it.
bool visit(Fields& fields, const Field& field, bool& value) {
  std::optional<bool> given;
  fields.flag(field, given);
  if (given) value = *given;
  return given.has_value();
}
bool visit(Fields& fields, const Field& field, double& value) {
  std::optional<double> given;
  fields.number(field, given);
  if (given) value = *given;
  return given.has_value();
}
bool visit(Fields& fields, const Field& field, std::vector<std::string>& value) {
  Texts given;
  fields.texts(field, given);
  value = std::move(given.values);
  return !value.empty();
}
bool visit(Fields& fields, const Field& field, LogitBias& value) {
  fields.biases(field, value);
  return !value.empty();
}
template <class Value>
bool visit(Fields& fields, Field field, Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    for (const auto& entry : kEnumNames<Value>) field.choices.emplace_back(entry.name);
    std::optional<std::string> given;
    fields.text(field, given);
    if (given) value = from_name<Value>(*given).value_or(value);
    return given.has_value();
  } else {
    static_assert(std::is_integral_v<Value>);
    // A signed field takes no more than it holds; a seed may be negative.
    if constexpr (std::is_signed_v<Value>) {
      field.max = std::min(field.max, static_cast<double>(std::numeric_limits<Value>::max()));
    }
    std::optional<int64_t> given;
    fields.integer(field, given);
    if (given) value = static_cast<Value>(*given);
    return given.has_value();
  }
}

}  // namespace

void describe_search(Fields& fields, SearchOverrides& search,
                     std::initializer_list<std::string_view> except) {
  for_each_option(search.values, [&](const OptionInfo& info, auto& value) {
    const Field field{.name = http_name_of(info),
                      .about = info.help,
                      .min = info.min,
                      .max = server_max(info, fields.limits())};
    if (*field.name == '\0' || std::ranges::find(except, info.name) != except.end()) return;
    if (visit(fields, field, value)) search.set(info.name);
  });
}

}  // namespace heed::serve
