#include "text/tokenizers/byte_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "heed/error.h"
#include "text/tokenizer_json/tokenizer_parts.h"
#include "text/tokenizers/special_tokens.h"
#include "text/tokenizers/tokenizer_folder.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

constexpr int32_t kPad = 0, kEnd = 1, kUnknown = 2, kFirstByte = 3;
constexpr int32_t kFirstExtra = kFirstByte + 256;
constexpr int kMaxExtraIds = 1 << 16;

std::vector<SpecialToken> special_tokens(const ByteTokenizerOptions& options) {
  std::vector<SpecialToken> tokens = {
      {"<pad>", kPad, true, true}, {"</s>", kEnd, true, true}, {"<unk>", kUnknown, true, true}};
  int32_t id = kFirstExtra;
  for (int i = 0; i < options.extra_ids; ++i) {
    tokens.push_back({"<extra_id_" + std::to_string(i) + ">", id++});
  }
  for (const std::string& token : options.special_tokens) tokens.push_back({token, id++});
  return tokens;
}

class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(const ByteTokenizerOptions& options)
      : options_(options), specials_(special_tokens(options)) {
    ids_.pad = kPad;
    ids_.end = kEnd;
    ids_.unknown = kUnknown;
    names_.resize(static_cast<size_t>(vocabulary_size()));
    for (const SpecialToken& token : specials_.tokens()) {
      names_[static_cast<size_t>(token.id)] = token.text;
    }
    for (int byte = 0; byte < 256; ++byte) {
      append_utf8(names_[static_cast<size_t>(kFirstByte) + static_cast<size_t>(byte)],
                  static_cast<char32_t>(byte));
    }
  }

  Encoding encode(std::string_view text, const EncodeOptions& options) const override {
    Encoding result;
    add_text(result, text, 0);
    if (options.special_tokens) add_end(result, text, 0);
    return result;
  }

  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options) const override {
    Encoding result = encode(first, options);
    Encoding other = encode(second, options);
    append_second(result, other, 0);  // ByT5 has no token types
    return result;
  }

  std::vector<int32_t> encode_ids(std::string_view text,
                                  const EncodeOptions& options) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size() + 1);
    for (const auto& part : specials_.split(text)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
      } else {
        for (size_t i = part.begin; i < part.end; ++i) ids.push_back(id_of(text[i]));
      }
    }
    if (options.special_tokens && (ids.empty() || ids.back() != kEnd)) ids.push_back(kEnd);
    return ids;
  }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override {
    std::string text;
    for (const int32_t id : ids) {
      check_id(id, vocabulary_size());
      if (id >= kFirstByte && id < kFirstExtra) {
        text += static_cast<char>(id - kFirstByte);
      } else if (!options.skip_special_tokens) {
        text += names_[static_cast<size_t>(id)];
      }
    }
    return text;
  }

  int64_t vocabulary_size() const override {
    return kFirstExtra + options_.extra_ids + static_cast<int64_t>(options_.special_tokens.size());
  }
  std::string piece(int32_t id) const override {
    check_id(id, vocabulary_size());
    return names_[static_cast<size_t>(id)];
  }
  std::optional<int32_t> find(std::string_view piece) const override {
    const auto found = std::find(names_.begin(), names_.end(), piece);
    if (found == names_.end()) return std::nullopt;
    return static_cast<int32_t>(found - names_.begin());
  }
  const SpecialIds& special_ids() const override { return ids_; }
  bool begins_word(int32_t id) const override {
    return id < kFirstByte || id >= kFirstExtra || id == id_of(' ') || id == id_of('\n');
  }

  void save(const std::string& folder) const override {
    nlohmann::ordered_json config = {{"tokenizer_class", "ByT5Tokenizer"},
                                     {"extra_ids", options_.extra_ids},
                                     {"pad_token", "<pad>"},
                                     {"eos_token", "</s>"},
                                     {"unk_token", "<unk>"},
                                     {"model_max_length", kNoMaxLength}};
    // If this list exists, transformers expects the sentinels in it.
    if (!options_.special_tokens.empty()) {
      config["additional_special_tokens"] =
          std::vector<std::string>(names_.begin() + kFirstExtra, names_.end());
    }
    write_tokenizer_file(folder, "tokenizer_config.json", config.dump(2) + "\n");
  }

 private:
  static int32_t id_of(char byte) { return kFirstByte + static_cast<unsigned char>(byte); }

  void add_text(Encoding& result, std::string_view text, int32_t type) const {
    for (const auto& part : specials_.split(text)) {
      if (part.id >= 0) {
        add_token(result, part.id, {to_signed(part.begin), to_signed(part.end)}, type);
        continue;
      }
      for (size_t i = part.begin; i < part.end; ++i) {
        add_token(result, id_of(text[i]), {to_signed(i), to_signed(i + 1)}, type);
      }
    }
  }

  static void add_end(Encoding& result, std::string_view text, int32_t type) {
    if (result.ids.empty() || result.ids.back() != kEnd) {
      add_special(result, kEnd, to_signed(text.size()), type);
    }
  }

  ByteTokenizerOptions options_;
  SpecialTokens specials_;
  SpecialIds ids_;
  std::vector<std::string> names_;  // by id
};

}  // namespace

TokenizerPtr make_byte_tokenizer(const ByteTokenizerOptions& options) {
  return std::make_shared<ByteTokenizer>(options);
}

TokenizerPtr load_byte_tokenizer(const TokenizerFolder& folder) {
  ByteTokenizerOptions options;
  const int64_t extra_ids = folder.number("extra_ids").value_or(options.extra_ids);
  if (extra_ids < 0 || extra_ids > kMaxExtraIds) {
    throw Error(ErrorCode::corrupt_file,
                folder.path("tokenizer_config.json") + ": \"extra_ids\" must be from 0 to " +
                    std::to_string(kMaxExtraIds) + ", got " + std::to_string(extra_ids));
  }
  options.extra_ids = static_cast<int>(extra_ids);
  for (const auto& token : folder.added_tokens()) {
    const bool known =
        token.text.starts_with("<extra_id_") || token.text == "<pad>" || token.text == "</s>" ||
        token.text == "<unk>" ||
        std::count(options.special_tokens.begin(), options.special_tokens.end(), token.text) > 0;
    if (!known && !token.text.empty()) options.special_tokens.push_back(token.text);
  }
  return make_byte_tokenizer(options);
}

}  // namespace heed
