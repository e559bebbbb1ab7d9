#include "serve/routes/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/suggest.h"
#include "serve/http/http_error.h"
#include "text/unicode/utf8.h"

namespace heed::serve {
namespace {

constexpr double kMostInteger =
    9007199254740992.0;  // 2^53: integers up to this are exact in a double

std::string kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return "the number " + value.dump();
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::object:
      return "an object";
    default:
      return "null";
  }
}

std::string shown(double value) {
  std::string text = Json(value).dump();
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

bool has_limit(double value) { return std::abs(value) < std::numeric_limits<double>::max(); }

std::string range_of(const Field& field) {
  if (has_limit(field.min) && has_limit(field.max)) {
    return "between " + shown(field.min) + " and " + shown(field.max);
  }
  return has_limit(field.min) ? "at least " + shown(field.min) : "at most " + shown(field.max);
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

template <class T>
std::optional<T> read_number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string url_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
    } else if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        throw HttpError(400, "invalid form: % must be followed by two hexadecimal digits",
                        "invalid_form");
      }
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

}  // namespace

Json parse_body(std::string_view body, int depth) {
  // nlohmann's parser keeps its stack on the heap; the limit protects recursive code that handles
  // the result.
  const auto check_depth = [&](int at, Json::parse_event_t event, const Json&) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && at >= depth) {
      throw HttpError(400, "JSON nesting must be at most " + std::to_string(depth) + " levels",
                      "invalid_json");
    }
    return true;
  };
  Json json;
  try {
    json = Json::parse(body, check_depth);
  } catch (const Json::parse_error& error) {
    // The message of the library quotes the body; the offset is enough.
    throw HttpError(
        400,
        "the body must be valid JSON in UTF-8 (error at byte " + std::to_string(error.byte) + ")",
        "invalid_json");
  } catch (const Json::exception&) {  // a number out of range
    throw HttpError(400, "the body must be valid JSON: a number is out of range", "invalid_json");
  }
  if (!json.is_object()) {
    throw HttpError(400, "the body must be a JSON object, got " + kind_of(json), "invalid_json");
  }
  return json;
}

Json parse_form(std::string_view body) {
  Json object = Json::object();
  while (!body.empty()) {
    const size_t end = std::min(body.find('&'), body.size());
    const std::string_view pair = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string key = url_decoded(pair.substr(0, equals));
    std::string value = url_decoded(pair.substr(std::min(equals + 1, pair.size())));
    if (!is_utf8(key) || !is_utf8(value)) {
      throw HttpError(400, "the form must be UTF-8", "invalid_form");
    }
    Json& place = object[key];
    if (place.is_null()) {
      place = std::move(value);
    } else if (place.is_string()) {
      place = Json::array({place, std::move(value)});
    } else {
      place.push_back(std::move(value));
    }
  }
  return object;
}

// ---- FieldReader -------------------------------------------------------------------------------

FieldReader::FieldReader(const Json& object, const FieldLimits& limits, bool is_form,
                         std::string prefix)
    : object_(object), limits_(limits), is_form_(is_form), prefix_(std::move(prefix)) {}

void FieldReader::refuse(const Field& field, const std::string& expected,
                         const std::string& found) const {
  const std::string name = prefix_ + field.name;
  throw HttpError::bad_field(name, name + " must be " + expected + ", got " + found);
}

bool FieldReader::is_given(const Field& field) const {
  const auto found = object_.find(field.name);
  return found != object_.end() && !found->is_null();
}

const Json* FieldReader::find(const Field& field) {
  known_.emplace_back(field.name);
  if (is_given(field)) return &*object_.find(field.name);
  if (!field.required) return nullptr;
  const std::string name = prefix_ + field.name;
  throw HttpError(400, name + " is missing: " + field.about, "missing_field", name);
}

void FieldReader::check_range(const Field& field, double value) const {
  if (value >= field.min && value <= field.max) return;
  refuse(field, range_of(field), shown(value));
}

void FieldReader::check_count(const Field& field, size_t count, int64_t most) const {
  if (static_cast<int64_t>(count) <= most) return;
  refuse(field, "a list of at most " + std::to_string(most), std::to_string(count));
}

std::string FieldReader::one_text(const Field& field, const Json& value) const {
  if (!value.is_string()) refuse(field, "a string", kind_of(value));
  const auto& text = value.get_ref<const std::string&>();
  if (static_cast<int64_t>(text.size()) > limits_.text_bytes) {
    const std::string name = prefix_ + field.name;
    throw HttpError(413,
                    name + " must have at most " + std::to_string(limits_.text_bytes) +
                        " bytes, got " + std::to_string(text.size()),
                    "text_too_long", name);
  }
  return text;
}

std::vector<int32_t> FieldReader::one_ids(const Field& field, const Json& value) const {
  check_count(field, value.size(), limits_.ids);
  std::vector<int32_t> list;
  for (const Json& id : value) {
    if (!id.is_number_integer() || id.get<double>() < 0 ||
        id.get<double>() > std::numeric_limits<int32_t>::max()) {
      refuse(field, "a list of token ids", kind_of(id));
    }
    list.push_back(id.get<int32_t>());
  }
  return list;
}

void FieldReader::text(const Field& field, std::string& value) {
  const Json* found = find(field);
  if (found == nullptr) return;
  value = one_text(field, *found);
  if (field.choices.empty()) return;
  if (std::ranges::find(field.choices, value) != field.choices.end()) return;
  refuse(field, "one of " + joined(field.choices), "'" + value.substr(0, 40) + "'");
}

void FieldReader::flag(const Field& field, bool& value) {
  const Json* found = find(field);
  if (found == nullptr) return;
  if (found->is_boolean()) {
    value = found->get<bool>();
  } else if (is_form_ && (*found == "true" || *found == "1")) {
    value = true;
  } else if (is_form_ && (*found == "false" || *found == "0")) {
    value = false;
  } else {
    refuse(field, "true or false", kind_of(*found));
  }
}

void FieldReader::number(const Field& field, double& value) {
  const Json* found = find(field);
  if (found == nullptr) return;
  std::optional<double> read;
  if (found->is_number()) read = found->get<double>();
  if (is_form_ && found->is_string()) read = read_number<double>(found->get<std::string>());
  if (!read || !std::isfinite(*read)) refuse(field, "a number", kind_of(*found));
  check_range(field, *read);
  value = *read;
}

void FieldReader::integer(const Field& field, int64_t& value) {
  const Json* found = find(field);
  if (found == nullptr) return;
  std::optional<double> read;
  if (found->is_number()) read = found->get<double>();
  if (is_form_ && found->is_string()) read = read_number<double>(found->get<std::string>());
  if (!read || *read != std::floor(*read) || std::abs(*read) > kMostInteger) {
    refuse(field, "an integer", kind_of(*found));
  }
  check_range(field, *read);
  value = static_cast<int64_t>(*read);
}

void FieldReader::texts(const Field& field, Texts& value) {
  const Json* found = find(field);
  if (found == nullptr) return;
  value = {.is_list = found->is_array()};
  if (!value.is_list) {
    value.values = {one_text(field, *found)};
    return;
  }
  check_count(field, found->size(),
              has_limit(field.max) ? static_cast<int64_t>(field.max) : limits_.texts);
  for (const Json& text : *found) value.values.push_back(one_text(field, text));
}

void FieldReader::prompts(const Field& field, Prompts& value) {
  const Json* found = find(field);
  if (found == nullptr) return;
  value = {.is_list = found->is_array()};
  if (!found->is_array()) {
    value.values = {{.text = one_text(field, *found)}};
    return;
  }
  if (!found->empty() && found->front().is_number()) {
    value.is_list = false;
    value.values = {{.ids = one_ids(field, *found)}};
    return;
  }
  check_count(field, found->size(), limits_.texts);
  for (const Json& item : *found) {
    if (item.is_array()) {
      value.values.push_back({.ids = one_ids(field, item)});
    } else {
      value.values.push_back({.text = one_text(field, item)});
    }
  }
}

void FieldReader::ids(const Field& field, std::vector<int32_t>& value) {
  const Json* found = find(field);
  if (found == nullptr) return;
  if (!found->is_array()) refuse(field, "a list of token ids", kind_of(*found));
  value = one_ids(field, *found);
}

void FieldReader::pairs(const Field& field, TextPairs& value) {
  const Json* found = find(field);
  if (found == nullptr) return;
  if (!found->is_object()) refuse(field, "an object of strings", kind_of(*found));
  check_count(field, found->size(), limits_.texts);
  value.clear();
  for (const auto& [key, text] : found->items()) {
    if (key.empty()) refuse(field, "an object without empty keys", "an empty key");
    value.emplace_back(one_text(field, key), one_text(field, text));
  }
}

void FieldReader::biases(const Field& field, LogitBias& value) {
  const Json* found = find(field);
  if (found == nullptr) return;
  if (!found->is_object()) refuse(field, "an object of token ids and numbers", kind_of(*found));
  check_count(field, found->size(), limits_.ids);
  for (const auto& [key, number] : found->items()) {
    const auto id = read_number<int32_t>(key);
    if (!id || *id < 0) refuse(field, "token ids as keys", "'" + key.substr(0, 40) + "'");
    if (!number.is_number()) refuse(field, "numbers", kind_of(number));
    check_range(field, number.get<double>());
    value[*id] = number.get<double>();
  }
}

void FieldReader::ignored(const Field& field) { find(field); }

void FieldReader::only(const Field& field, const Json& value) {
  const Json* found = find(field);
  if (found == nullptr || *found == value) return;
  refuse(field, "absent or " + value.dump() + " (not supported otherwise)", kind_of(*found));
}

void FieldReader::inside(const Field& field, const std::function<void(Fields& fields)>& describe) {
  const Json* found = find(field);
  if (found == nullptr) return;
  if (!found->is_object()) refuse(field, "an object", kind_of(*found));
  FieldReader reader(*found, limits_, is_form_, prefix_ + field.name + ".");
  describe(reader);
  reader.finish();
}

void FieldReader::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    const auto meant = nearest(key, known_);
    const std::string name = prefix_ + key.substr(0, 100);
    throw HttpError(400,
                    "unknown field '" + name + "'" +
                        (meant ? ": did you mean '" + prefix_ + *meant + "'?"
                               : "; known fields: " + joined(known_)),
                    "unknown_field", name);
  }
}

// ---- FieldSchema -------------------------------------------------------------------------------

void FieldSchema::add(const Field& field, Json schema) {
  if (*field.about != '\0') schema["description"] = field.about;
  properties_[field.name] = std::move(schema);
  if (field.required) required_.push_back(field.name);
}

void FieldSchema::text(const Field& field, std::string& value) {
  Json schema{{"type", "string"}};
  if (!field.choices.empty()) schema["enum"] = field.choices;
  if (!value.empty()) schema["default"] = value;
  add(field, std::move(schema));
}

void FieldSchema::flag(const Field& field, bool& value) {
  add(field, {{"type", "boolean"}, {"default", value}});
}

namespace {

Json number_schema(const Field& field, const char* type) {
  Json schema{{"type", type}};
  if (has_limit(field.min)) schema["minimum"] = field.min;
  if (has_limit(field.max)) schema["maximum"] = field.max;
  return schema;
}

Json ids_schema() { return schema::list(schema::integer()); }

}  // namespace

void FieldSchema::integer(const Field& field, int64_t&) {
  add(field, number_schema(field, "integer"));
}
void FieldSchema::number(const Field& field, double&) {
  add(field, number_schema(field, "number"));
}
void FieldSchema::texts(const Field& field, Texts&) {
  add(field, {{"oneOf", Json::array({schema::text(), schema::list(schema::text())})}});
}
void FieldSchema::prompts(const Field& field, Prompts&) {
  add(field, {{"oneOf", Json::array({schema::text(), schema::list(schema::text()), ids_schema(),
                                     schema::list(ids_schema())})}});
}
void FieldSchema::ids(const Field& field, std::vector<int32_t>&) { add(field, ids_schema()); }
void FieldSchema::pairs(const Field& field, TextPairs&) { add(field, schema::map(schema::text())); }
void FieldSchema::biases(const Field& field, LogitBias&) {
  add(field, schema::map(number_schema(field, "number")));
}
void FieldSchema::ignored(const Field& field) { add(field, Json::object()); }
void FieldSchema::only(const Field& field, const Json& value) {
  add(field, {{"enum", Json::array({value})}});
}
void FieldSchema::inside(const Field& field, const std::function<void(Fields& fields)>& describe) {
  FieldSchema inner(limits_);
  describe(inner);
  add(field, inner.schema());
}

Json FieldSchema::schema() const {
  Json schema{{"type", "object"}, {"properties", properties_}};
  if (!required_.empty()) schema["required"] = required_;
  schema["additionalProperties"] = false;
  return schema;
}

}  // namespace heed::serve
