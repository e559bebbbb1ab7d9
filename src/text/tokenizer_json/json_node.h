// A value in a JSON file with its path, for messages:
// "tokenizer.json: model.merges[3]: must be a text, got a number".
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace heed {

// 'text', for messages.
std::string in_single_quotes(std::string_view text);

class JsonNode {
 public:
  using Json = nlohmann::json;

  // The root of a document; `file` begins every message. `value` must outlive the node.
  JsonNode(const Json& value, std::string file) : value_(&value), file_(std::move(file)) {}

  const Json& value() const { return *value_; }
  bool is_null() const { return value_->is_null(); }
  bool is_text() const { return value_->is_string(); }

  bool has(const char* key) const;  // a member that is not null
  JsonNode at(const char* key) const;
  JsonNode at(size_t index) const;
  std::vector<JsonNode> elements() const;

  const std::string& text() const;
  bool flag() const;
  double number() const;
  int64_t integer(int64_t min, int64_t max) const;
  char32_t character() const;  // a text of one code point

  const std::string& text(const char* key) const { return at(key).text(); }
  std::string text(const char* key, const std::string& otherwise) const;
  bool flag(const char* key, bool otherwise) const;

  // Throws corrupt_file: "FILE: PATH: must be …, got …".
  [[noreturn]] void must_be(const std::string& what) const;
  // Throws corrupt_file: "FILE: PATH: problem".
  [[noreturn]] void corrupt(const std::string& problem) const;
  // Throws unsupported: "FILE: normalizer: 'Shout' is not supported".
  [[noreturn]] void unsupported(const std::string& kind, const std::string& known) const;

 private:
  JsonNode(const Json& value, std::string file, std::string path)
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}
  std::string place() const;

  const Json* value_;
  std::string file_, path_;
};

}  // namespace heed
