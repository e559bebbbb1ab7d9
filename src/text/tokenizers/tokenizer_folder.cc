#include "text/tokenizers/tokenizer_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/text/json_depth.h"
#include "heed/error.h"

namespace heed {
namespace {

using Json = nlohmann::json;

// The tokenizer_class of a model_type, for folders that name none.
constexpr std::pair<const char*, const char*> kClassOfModelType[] = {
    {"albert", "AlbertTokenizer"},   {"bert", "BertTokenizer"},
    {"distilbert", "BertTokenizer"}, {"gemma", "GemmaTokenizer"},
    {"gemma2", "GemmaTokenizer"},    {"gpt2", "GPT2Tokenizer"},
    {"llama", "LlamaTokenizer"},     {"m2m_100", "M2M100Tokenizer"},
    {"marian", "MarianTokenizer"},   {"mbart", "MBartTokenizer"},
    {"mistral", "LlamaTokenizer"},   {"mt5", "T5Tokenizer"},
    {"pegasus", "PegasusTokenizer"}, {"roberta", "RobertaTokenizer"},
    {"t5", "T5Tokenizer"},           {"xlm-roberta", "XLMRobertaTokenizer"},
};

std::string string_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string class_of(const Json& tokenizer_config, const Json& config) {
  std::string name = string_at(tokenizer_config, "tokenizer_class");
  if (name.empty()) name = string_at(config, "tokenizer_class");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  if (!name.empty()) return name;
  const std::string model_type = string_at(config, "model_type");
  for (const auto& [type, tokenizer_class] : kClassOfModelType) {
    if (model_type == type) return tokenizer_class;
  }
  return "";
}

Json read_object(const std::string& path) {
  if (!std::filesystem::exists(path)) return Json::object();
  Json json = read_json(path);
  if (!json.is_object()) {
    throw Error(ErrorCode::corrupt_file, path + ": must be a JSON object");
  }
  return json;
}

// "</s>", or {"content": "</s>", "lstrip": false, …}.
std::optional<std::string> token_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return std::nullopt;
  const auto content = value.find("content");
  if (content == value.end() || !content->is_string()) return std::nullopt;
  return content->get<std::string>();
}

bool flag_at(const Json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

// The position of a syntax error: the parser has read `bytes`, including the invalid one.
std::string syntax_error(const std::string& text, size_t bytes) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) return "it is empty";
  if (bytes > text.size()) return "it is truncated";
  const std::string_view read(text.data(), bytes);
  const size_t line_begin = read.substr(0, bytes - std::min<size_t>(bytes, 1)).rfind('\n') + 1;
  return "syntax error in line " +
         std::to_string(1 + std::ranges::count(read.substr(0, line_begin), '\n')) + ", column " +
         std::to_string(bytes - line_begin);
}

}  // namespace

std::string read_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    throw Error(ErrorCode::invalid_argument, path + " is a folder, must be a file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::not_found, path + " cannot be opened");
  return {std::istreambuf_iterator<char>(file), {}};
}

Json parse_json(const std::string& text, const std::string& path) {
  if (is_too_deep_json(text)) {
    throw Error(ErrorCode::corrupt_file,
                path + ": lists and objects must not be nested too deeply");
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(ErrorCode::corrupt_file, path + " is not JSON: " + syntax_error(text, error.byte));
  } catch (const Json::exception&) {
    throw Error(ErrorCode::corrupt_file, path + " is not JSON: a number is out of range");
  }
}

Json read_json(const std::string& path) { return parse_json(read_file(path), path); }

TokenizerFolder::TokenizerFolder(std::string folder) : folder_(std::move(folder)) {
  config_ = read_object(path("tokenizer_config.json"));
  special_tokens_ = read_object(path("special_tokens_map.json"));
  class_ = class_of(config_, read_object(path("config.json")));
}

TokenizerFolder TokenizerFolder::with_config(Json tokenizer_config) {
  TokenizerFolder folder;
  folder.on_disk_ = false;
  folder.class_ = class_of(tokenizer_config, Json::object());
  folder.config_ = std::move(tokenizer_config);
  folder.special_tokens_ = Json::object();
  return folder;
}

bool TokenizerFolder::has(const std::string& name) const {
  return on_disk_ && std::filesystem::exists(path(name));
}

std::string TokenizerFolder::path(const std::string& name) const {
  return std::filesystem::path(folder_) / name;
}

const Json* TokenizerFolder::find(const std::string& key) const {
  const auto found = config_.find(key);
  return found == config_.end() || found->is_null() ? nullptr : &*found;
}

void TokenizerFolder::throw_type(const std::string& key, const std::string& expected) const {
  throw Error(ErrorCode::corrupt_file,
              path("tokenizer_config.json") + ": \"" + key + "\" must be " + expected);
}

std::optional<bool> TokenizerFolder::flag(const std::string& key) const {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) throw_type(key, "true or false");
  return value->get<bool>();
}

std::optional<int64_t> TokenizerFolder::number(const std::string& key) const {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_number_integer()) throw_type(key, "a whole number");
  return value->get<int64_t>();
}

std::optional<std::string> TokenizerFolder::text(const std::string& key) const {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_string()) throw_type(key, "a string");
  return value->get<std::string>();
}

std::optional<std::string> TokenizerFolder::token(const std::string& key) const {
  if (const Json* value = find(key)) {
    std::optional<std::string> content = token_text(*value);
    if (!content) throw_type(key, "a token");
    return content;
  }
  const auto found = special_tokens_.find(key);
  return found == special_tokens_.end() ? std::nullopt : token_text(*found);
}

std::vector<TokenizerFolder::AddedToken> TokenizerFolder::added_tokens() const {
  std::vector<AddedToken> tokens;
  if (const Json* decoder = find("added_tokens_decoder")) {
    if (!decoder->is_object()) throw_type("added_tokens_decoder", "an object");
    for (const auto& [key, value] : decoder->items()) {
      const std::optional<std::string> content = token_text(value);
      if (!content || key.empty() || key.size() > 9 ||
          key.find_first_not_of("0123456789") != std::string::npos) {
        throw_type("added_tokens_decoder", "a list of ids and tokens");
      }
      tokens.push_back({*content, std::stoi(key),
                        value.is_object() && flag_at(value, "lstrip", false),
                        value.is_object() && flag_at(value, "rstrip", false),
                        value.is_object() && flag_at(value, "special", true)});
    }
  }
  if (has("added_tokens.json")) {  // older folders: {"<token>": id}
    const Json added = read_object(path("added_tokens.json"));
    for (const auto& [token, id] : added.items()) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() > 999'999'999) {
        throw Error(ErrorCode::corrupt_file,
                    path("added_tokens.json") + ": must be an object of tokens and ids");
      }
      tokens.push_back({.text = token, .id = id.get<int32_t>(), .special = false});
    }
  }
  const Json* additional = find("additional_special_tokens");
  if (!additional) {
    const auto found = special_tokens_.find("additional_special_tokens");
    if (found != special_tokens_.end()) additional = &*found;
  }
  if (additional && additional->is_array()) {
    for (const Json& value : *additional) {
      if (const auto content = token_text(value)) tokens.push_back({.text = *content, .id = {}});
    }
  }
  return tokens;
}

}  // namespace heed
