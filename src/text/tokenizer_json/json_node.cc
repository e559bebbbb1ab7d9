#include "text/tokenizer_json/json_node.h"

#include "heed/error.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

const char* kind_of(const nlohmann::json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "true or false";
  if (value.is_number_integer()) return "a whole number";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a text";
  return value.is_array() ? "a list" : "an object";
}

}  // namespace

std::string in_single_quotes(std::string_view text) {
  return std::string("'").append(text).append("'");
}

std::string JsonNode::place() const { return path_.empty() ? file_ : file_ + ": " + path_; }

void JsonNode::must_be(const std::string& what) const {
  corrupt("must be " + what + ", got " + kind_of(*value_));
}

void JsonNode::corrupt(const std::string& problem) const {
  throw Error(ErrorCode::corrupt_file, place() + ": " + problem,
              "the file is damaged or was made by another tool; download it again");
}

void JsonNode::unsupported(const std::string& kind, const std::string& known) const {
  throw Error(ErrorCode::unsupported, place() + ": " + in_single_quotes(kind) + " is not supported",
              "supported: " + known);
}

bool JsonNode::has(const char* key) const {
  if (!value_->is_object()) must_be("an object");
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonNode JsonNode::at(const char* key) const {
  if (!value_->is_object()) must_be("an object");
  const auto found = value_->find(key);
  if (found == value_->end()) corrupt(in_single_quotes(key) + " is missing");
  return {*found, file_, path_.empty() ? key : path_ + "." + key};
}

JsonNode JsonNode::at(size_t index) const {
  if (!value_->is_array()) must_be("a list");
  if (index >= value_->size()) corrupt("element " + std::to_string(index) + " is missing");
  return {(*value_)[index], file_, path_ + "[" + std::to_string(index) + "]"};
}

std::vector<JsonNode> JsonNode::elements() const {
  if (!value_->is_array()) must_be("a list");
  std::vector<JsonNode> nodes;
  nodes.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) nodes.push_back(at(i));
  return nodes;
}

const std::string& JsonNode::text() const {
  if (!value_->is_string()) must_be("a text");
  return value_->get_ref<const std::string&>();
}

bool JsonNode::flag() const {
  if (!value_->is_boolean()) must_be("true or false");
  return value_->get<bool>();
}

double JsonNode::number() const {
  if (!value_->is_number()) must_be("a number");
  return value_->get<double>();
}

int64_t JsonNode::integer(int64_t min, int64_t max) const {
  if (!value_->is_number_integer()) must_be("a whole number");
  // A number beyond int64 would wrap to a negative one.
  const bool huge = value_->is_number_unsigned() && value_->get<uint64_t>() > uint64_t(INT64_MAX);
  const int64_t number = huge ? INT64_MAX : value_->get<int64_t>();
  if (number < min || number > max) {
    corrupt("must be a number from " + std::to_string(min) + " to " + std::to_string(max) +
            ", got " + value_->dump());
  }
  return number;
}

char32_t JsonNode::character() const {
  const std::string& characters = text();
  if (characters.empty() || decode_utf8(characters, 0).bytes != characters.size()) {
    corrupt("must be one character, got '" + characters + "'");
  }
  return decode_utf8(characters, 0).value;
}

std::string JsonNode::text(const char* key, const std::string& otherwise) const {
  return has(key) ? at(key).text() : otherwise;
}

bool JsonNode::flag(const char* key, bool otherwise) const {
  return has(key) ? at(key).flag() : otherwise;
}

}  // namespace heed
