#include "text/tokenizers/char_tokenizer.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "heed/error.h"
#include "text/tokenizer_json/tokenizer_parts.h"
#include "text/tokenizers/special_tokens.h"
#include "text/tokenizers/tokenizer_folder.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

constexpr int32_t kPad = 0, kEnd = 1, kUnknown = 2, kFirstFree = 3;
constexpr const char* kTypeKey = "heed_type";

class CharTokenizer : public Tokenizer {
 public:
  explicit CharTokenizer(const CharTokenizerOptions& options) : lowercase_(options.lowercase) {
    pieces_ = {"<pad>", "</s>", "<unk>"};
    pieces_.insert(pieces_.end(), options.special_tokens.begin(), options.special_tokens.end());
    std::vector<SpecialToken> specials;
    for (size_t id = 0; id < pieces_.size(); ++id) {
      specials.push_back({pieces_[id], static_cast<int32_t>(id)});
    }
    specials_ = SpecialTokens(std::move(specials));
    first_character_ = static_cast<int32_t>(pieces_.size());
    for (const char32_t c : options.characters) {
      if (!by_code_.emplace(c, static_cast<int32_t>(pieces_.size())).second) continue;
      pieces_.push_back(to_utf8(c));
    }
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (!by_piece_.emplace(pieces_[id], static_cast<int32_t>(id)).second) {
        throw Error(ErrorCode::invalid_argument,
                    "special tokens must be unique, got " + pieces_[id] + " twice",
                    "<pad>, </s> and <unk> are added automatically");
      }
    }
    ids_.pad = kPad;
    ids_.end = kEnd;
    ids_.unknown = kUnknown;
  }

  Encoding encode(std::string_view text, const EncodeOptions& options) const override {
    Encoding result;
    each_token(text, [&](int32_t id, size_t begin, size_t end) {
      add_token(result, id, {to_signed(begin), to_signed(end)});
    });
    if (options.special_tokens && !ends(result.ids)) {
      add_special(result, kEnd, to_signed(text.size()));
    }
    return result;
  }

  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options) const override {
    Encoding result = encode(first, options);
    append_second(result, encode(second, options), 0);
    return result;
  }

  std::vector<int32_t> encode_ids(std::string_view text,
                                  const EncodeOptions& options) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size() + 1);
    each_token(text, [&](int32_t id, size_t, size_t) { ids.push_back(id); });
    if (options.special_tokens && !ends(ids)) ids.push_back(kEnd);
    return ids;
  }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override {
    std::string text;
    for (const int32_t id : ids) {
      check_id(id, vocabulary_size());
      if (id >= first_character_ || !options.skip_special_tokens) {
        text += pieces_[static_cast<size_t>(id)];
      }
    }
    return text;
  }

  int64_t vocabulary_size() const override { return to_signed(pieces_.size()); }
  std::string piece(int32_t id) const override {
    check_id(id, vocabulary_size());
    return pieces_[static_cast<size_t>(id)];
  }
  std::optional<int32_t> find(std::string_view piece) const override {
    const auto found = by_piece_.find(std::string(piece));
    return found == by_piece_.end() ? std::nullopt : std::optional(found->second);
  }
  const SpecialIds& special_ids() const override { return ids_; }
  bool begins_word(int32_t id) const override {
    if (id < first_character_) return true;
    return is_space(decode_utf8(pieces_.at(static_cast<size_t>(id)), 0).value);
  }

  void save(const std::string& folder) const override {
    write_tokenizer_file(folder, "tokenizer.json", tokenizer_json().dump(2) + "\n");
    Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                   {kTypeKey, "char"},
                   {"pad_token", "<pad>"},
                   {"eos_token", "</s>"},
                   {"unk_token", "<unk>"},
                   {"clean_up_tokenization_spaces", false},
                   {"model_max_length", kNoMaxLength}};
    write_tokenizer_file(folder, "tokenizer_config.json", config.dump(2) + "\n");
  }

 private:
  static bool ends(const std::vector<int32_t>& ids) { return !ids.empty() && ids.back() == kEnd; }

  int32_t id_of(char32_t c) const {
    const auto found = by_code_.find(c);
    return found == by_code_.end() ? kUnknown : found->second;
  }

  // token(id, begin, end) for each.
  template <class Function>
  void each_token(std::string_view text, Function token) const {
    std::string lower;
    for (const auto& part : specials_.split(text)) {
      if (part.id >= 0) {
        token(part.id, part.begin, part.end);
        continue;
      }
      for (size_t at = part.begin; at < part.end;) {
        const CodePoint c = decode_utf8(text.substr(0, part.end), at);
        const bool stray = is_stray_byte(c.value);
        const size_t end = at + (stray ? broken_bytes(text.substr(0, part.end), at) : c.bytes);
        if (!lowercase_ || stray) {
          token(id_of(stray ? kReplacementCharacter : c.value), at, end);
        } else {
          lower.clear();
          append_lower(lower, c.value);
          for (size_t i = 0; i < lower.size();) {
            const CodePoint l = decode_utf8(lower, i);
            token(id_of(l.value), at, end);
            i += l.bytes;
          }
        }
        at = end;
      }
    }
  }

  Json tokenizer_json() const {
    Json added = Json::array(), vocabulary = Json::object();
    for (int32_t id = 0; id < first_character_; ++id) {
      added.push_back({{"id", id},
                       {"content", pieces_[static_cast<size_t>(id)]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
    }
    for (size_t id = 0; id < pieces_.size(); ++id) vocabulary[pieces_[id]] = id;
    const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    const Json second = {{"Sequence", {{"id", "B"}, {"type_id", 0}}}};
    const Json end = {{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}};
    const Json end_token = {{"id", "</s>"}, {"ids", {kEnd}}, {"tokens", {"</s>"}}};
    return {{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", added},
            {"normalizer", lowercase_ ? Json{{"type", "Lowercase"}} : Json(nullptr)},
            {"pre_tokenizer",
             {{"type", "Split"},
              {"pattern", {{"Regex", "[\\s\\S]"}}},
              {"behavior", "Isolated"},
              {"invert", false}}},
            {"post_processor",
             {{"type", "TemplateProcessing"},
              {"single", {text, end}},
              {"pair", {text, end, second, end}},
              {"special_tokens", {{"</s>", end_token}}}}},
            {"decoder", {{"type", "Fuse"}}},
            {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "<unk>"}}}};
  }

  bool lowercase_;
  std::vector<std::string> pieces_;  // by id
  int32_t first_character_ = kFirstFree;
  SpecialTokens specials_;
  std::unordered_map<char32_t, int32_t> by_code_;
  std::unordered_map<std::string, int32_t> by_piece_;
  SpecialIds ids_;
};

[[noreturn]] void throw_corrupt(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::corrupt_file, path + ": not a char tokenizer: " + what);
}

}  // namespace

TokenizerPtr make_char_tokenizer(const CharTokenizerOptions& options) {
  return std::make_shared<CharTokenizer>(options);
}

std::vector<char32_t> ascii_characters() {
  std::vector<char32_t> characters = {U'\t', U'\n'};
  for (char32_t c = U' '; c <= U'~'; ++c) characters.push_back(c);
  return characters;
}

bool is_char_tokenizer(const TokenizerFolder& folder) {
  return folder.has("tokenizer.json") && folder.text(kTypeKey) == "char";
}

TokenizerPtr load_char_tokenizer(const TokenizerFolder& folder) {
  const std::string path = folder.path("tokenizer.json");
  const nlohmann::json json = read_json(path);
  try {
    const nlohmann::json& vocabulary = json.at("model").at("vocab");
    std::vector<std::string> pieces(vocabulary.size());
    for (const auto& [piece, id] : vocabulary.items()) {
      if (!id.is_number_unsigned()) throw_corrupt(path, "a token's id must be a number");
      std::string& slot = pieces.at(id.get<size_t>());
      if (piece.empty() || !slot.empty()) throw_corrupt(path, "ids must be unique");
      slot = piece;
    }
    CharTokenizerOptions options;
    options.lowercase = json.at("normalizer").is_object();
    const size_t specials = json.at("added_tokens").size();
    if (pieces.size() < specials || specials < kFirstFree || pieces[kPad] != "<pad>" ||
        pieces[kEnd] != "</s>" || pieces[kUnknown] != "<unk>") {
      throw_corrupt(path, "<pad>, </s> and <unk> must be first");
    }
    for (size_t id = kFirstFree; id < pieces.size(); ++id) {
      if (id < specials) {
        options.special_tokens.push_back(pieces[id]);
        continue;
      }
      const CodePoint c = decode_utf8(pieces[id], 0);
      if (c.bytes != pieces[id].size()) throw_corrupt(path, "a token must be one character");
      options.characters.push_back(c.value);
    }
    return make_char_tokenizer(options);
  } catch (const nlohmann::json::exception&) {
    throw_corrupt(path, "a field is missing or has the wrong type");
  } catch (const std::out_of_range&) {
    throw_corrupt(path, "an id is out of range");
  }
}

}  // namespace heed
