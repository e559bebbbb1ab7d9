// The tokenizer's view of a model folder: its files and the settings in tokenizer_config.json,
// special_tokens_map.json and config.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace heed {

// The whole file. Throws not_found, or invalid_argument when it is a folder.
std::string read_file(const std::string& path);
// Throws corrupt_file, with the position, for invalid or too deeply nested JSON.
nlohmann::json parse_json(const std::string& text, const std::string& path);
nlohmann::json read_json(const std::string& path);

class TokenizerFolder {
 public:
  // Reads the JSON files that exist. Throws corrupt_file when one is not a JSON object.
  explicit TokenizerFolder(std::string folder);
  // A folder that does not exist yet, with this tokenizer_config.json and no other file.
  static TokenizerFolder with_config(nlohmann::json tokenizer_config);

  bool has(const std::string& name) const;
  std::string path(const std::string& name) const;  // in the folder

  // "T5Tokenizer": from tokenizer_config.json or config.json, without "Fast"; otherwise the class of
  // config.json's model_type; otherwise "".
  const std::string& tokenizer_class() const { return class_; }

  // A setting of tokenizer_config.json; none when absent or null. Throws corrupt_file for another
  // type.
  std::optional<bool> flag(const std::string& key) const;
  std::optional<int64_t> number(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;

  // The text of "eos_token" and the like, which may be written as an object with "content";
  // special_tokens_map.json has them where tokenizer_config.json does not.
  std::optional<std::string> token(const std::string& key) const;

  // "added_tokens_decoder", added_tokens.json, "additional_special_tokens" (with no id), in that
  // order.
  struct AddedToken {
    std::string text;
    std::optional<int32_t> id;
    bool strip_left = false, strip_right = false, special = true;
  };
  std::vector<AddedToken> added_tokens() const;

 private:
  TokenizerFolder() = default;
  const nlohmann::json* find(const std::string& key) const;
  [[noreturn]] void throw_type(const std::string& key, const std::string& expected) const;

  bool on_disk_ = true;
  std::string folder_, class_;
  nlohmann::json config_, special_tokens_;
};

}  // namespace heed
