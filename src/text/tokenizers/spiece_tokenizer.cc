#include "text/tokenizers/spiece_tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "heed/error.h"
#include "text/tokenizer_json/tokenizer_parts.h"
#include "text/tokenizers/tokenizer_folder.h"
#include "text/unicode/mapped_text.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

constexpr std::string_view kSpaceMark = "▁";

std::string stripped(const std::string& text) {
  size_t begin = 0, end = text.size();
  while (begin < end) {
    const CodePoint c = decode_utf8(text, begin);
    if (!is_space(c.value)) break;
    begin += c.bytes;
  }
  while (end > begin) {
    const CodePoint c = decode_utf8_before(text, end);
    if (!is_space(c.value)) break;
    end -= c.bytes;
  }
  return text.substr(begin, end - begin);
}

class SpieceTokenizer : public Tokenizer {
 public:
  SpieceTokenizer(SpieceModel model, SpieceLayout layout, TokenizerFiles files)
      : model_(std::move(model)),
        layout_(std::move(layout)),
        files_(std::move(files)),
        specials_(layout_.tokens) {
    HEED_CHECK(layout_.special.size() == layout_.pieces.size(), "must have one flag per piece");
    HEED_CHECK(layout_.added.size() == layout_.pieces.size(), "must have one flag per piece");
    HEED_CHECK(static_cast<int32_t>(layout_.id_of_piece.size()) == model_.size(),
               "must have one id per piece");
    for (size_t id = 0; id < layout_.pieces.size(); ++id) {
      by_piece_.emplace(layout_.pieces[id], static_cast<int32_t>(id));
    }
    unknown_marker_tokens_ = layout_.legacy ? 0 : model_.encode_ids(unknown_marker()).size();
  }

  Encoding encode(std::string_view text, const EncodeOptions& options) const override {
    Encoding result;
    if (options.special_tokens) add_all(result, layout_.before, 0);
    add_text(result, text);
    if (options.special_tokens) add_end(result, text);
    return result;
  }

  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options) const override {
    Encoding result, other;
    if (options.special_tokens) add_all(result, layout_.before, 0);
    add_text(result, first);
    if (options.special_tokens) {
      if (layout_.end_once) {
        add_end(result, first);
      } else {
        add_all(result, layout_.between, to_signed(first.size()));
      }
    }
    add_text(other, second);
    if (options.special_tokens) add_end(other, second);
    append_second(result, other, 0);  // none of these models has token types
    return result;
  }

  std::vector<int32_t> encode_ids(std::string_view text,
                                  const EncodeOptions& options) const override {
    return encode(text, options).ids;
  }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override {
    std::string text;
    std::vector<int32_t> run;
    bool first = true;
    const auto add = [&](const std::string& part) {
      if (!std::exchange(first, false)) text += ' ';
      text += part;
    };
    for (const int32_t id : ids) {
      check_id(id, vocabulary_size());
      const auto at = static_cast<size_t>(id);
      if (options.skip_special_tokens && layout_.special[at]) continue;
      if (!layout_.added[at]) {
        run.push_back(id);
        continue;
      }
      if (!run.empty()) {
        const std::string part = decode_run(run);
        if (!part.empty()) add(part);
        run.clear();
      }
      add(layout_.pieces[at]);
    }
    if (!run.empty()) add(decode_run(run));
    return text;
  }

  int64_t vocabulary_size() const override { return to_signed(layout_.pieces.size()); }
  std::string piece(int32_t id) const override {
    check_id(id, vocabulary_size());
    return layout_.pieces[static_cast<size_t>(id)];
  }
  std::optional<int32_t> find(std::string_view piece) const override {
    const auto found = by_piece_.find(std::string(piece));
    return found == by_piece_.end() ? std::nullopt : std::optional(found->second);
  }
  const SpecialIds& special_ids() const override { return layout_.ids; }
  bool begins_word(int32_t id) const override {
    check_id(id, vocabulary_size());
    const auto at = static_cast<size_t>(id);
    return layout_.special[at] || layout_.added[at] || layout_.pieces[at].starts_with(kSpaceMark);
  }

  void save(const std::string& folder) const override {
    for (const auto& [name, content] : files_) write_tokenizer_file(folder, name, content);
  }

 private:
  // A folder may remove the unknown token's name; the model always has one.
  std::string unknown_marker() const {
    const int32_t id = layout_.ids.unknown;
    return id < 0 ? model_.piece(model_.unknown()) : layout_.pieces[static_cast<size_t>(id)];
  }

  static void add_all(Encoding& result, const std::vector<int32_t>& ids, int64_t position) {
    for (const int32_t id : ids) add_special(result, id, position);
  }

  void add_end(Encoding& result, std::string_view text) const {
    const bool there = layout_.end_once && !layout_.after.empty() && !result.ids.empty() &&
                       result.ids.back() == layout_.after[0];
    if (!there) add_all(result, layout_.after, to_signed(text.size()));
  }

  void add_text(Encoding& result, std::string_view text) const {
    if (text.empty()) return;
    MappedText mapped = map_repaired(text);
    if (!layout_.legacy) {
      mapped = map_replaced(std::move(mapped), kSpaceMark, " ",
                            layout_.prefix_space ? kSpaceMark : std::string_view());
    }
    const auto span = [&mapped](size_t begin, size_t end) {
      return TextSpan{mapped.source_position(begin), mapped.source_position(end)};
    };
    const size_t start = result.ids.size();
    for (const auto& part : specials_.split(mapped.text)) {
      if (part.id >= 0) {
        // After a special token, the space before the text is not a separate token.
        if (!layout_.legacy && result.ids.size() == start + 1 &&
            layout_.pieces[static_cast<size_t>(result.ids[start])] == kSpaceMark) {
          drop_last(result);
        }
        add_token(result, part.id, span(part.begin, part.end));
        continue;
      }
      for (const SpieceModel::Token& token :
           encode_part(std::string_view(mapped.text).substr(part.begin, part.end - part.begin))) {
        add_token(result, layout_.id_of_piece[static_cast<size_t>(token.id)],
                  span(part.begin + token.begin, part.begin + token.end));
      }
    }
  }

  static void drop_last(Encoding& result) {
    result.ids.pop_back();
    result.offsets.pop_back();
    result.types.pop_back();
    result.is_special.pop_back();
  }

  // Without its dummy prefix the model would drop a leading space. As in Hugging Face's tokenizer,
  // "<unk>" is prepended to such a text and its pieces are removed again.
  std::vector<SpieceModel::Token> encode_part(std::string_view part) const {
    if (layout_.legacy || !(part.starts_with(kSpaceMark) || part.starts_with(' '))) {
      return model_.encode(part);
    }
    const std::string marker = unknown_marker();
    std::vector<SpieceModel::Token> tokens = model_.encode(marker + std::string(part));
    if (tokens.size() >= unknown_marker_tokens_) {
      tokens.erase(tokens.begin(),
                   tokens.begin() + static_cast<std::ptrdiff_t>(unknown_marker_tokens_));
    }
    for (SpieceModel::Token& token : tokens) {
      token.begin -= std::min(token.begin, marker.size());
      token.end -= std::min(token.end, marker.size());
    }
    return tokens;
  }

  // Decodes ids without added tokens.
  std::string decode_run(const std::vector<int32_t>& ids) const {
    if (layout_.joins_plainly) return joined(ids);
    std::string text;
    std::vector<std::string> pieces;
    bool after_special = false;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto at = static_cast<size_t>(ids[i]);
      std::string piece = layout_.pieces[at];
      // The space that encode() prepended.
      if (i == 0 && layout_.prefix_space && !layout_.special[at] && piece.starts_with(kSpaceMark)) {
        piece.erase(0, kSpaceMark.size());
      }
      if (layout_.special[at]) {
        if (!after_special && layout_.spaces_special) text += ' ';
        text += model_.decode(pieces) + piece;
        pieces.clear();
        after_special = true;
      } else {
        pieces.push_back(std::move(piece));
        after_special = false;
      }
    }
    text += model_.decode(pieces);
    return layout_.strips ? stripped(text) : text;
  }

  std::string joined(const std::vector<int32_t>& ids) const {
    MappedText text;
    for (const int32_t id : ids) text.text += layout_.pieces[static_cast<size_t>(id)];
    return stripped(map_replaced(std::move(text), kSpaceMark, " ").text);
  }

  SpieceModel model_;
  SpieceLayout layout_;
  TokenizerFiles files_;
  SpecialTokens specials_;
  std::unordered_map<std::string, int32_t> by_piece_;
  size_t unknown_marker_tokens_ = 0;
};

std::string class_of(const TokenizerFolder& folder, const std::string& name) {
  if (name.ends_with(".spm")) return "";  // one of Marian's models alone
  const std::string& named = folder.tokenizer_class();
  if (!named.empty() && named != "PreTrainedTokenizer") return named;
  if (name == "spiece.model") return "T5Tokenizer";
  if (name == "tokenizer.model") return "LlamaTokenizer";
  if (name == "sentencepiece.bpe.model") return "XLMRobertaTokenizer";
  return "";
}

// The files that save() writes: unchanged, with the class added if none is named.
TokenizerFiles files_of(const TokenizerFolder& folder, const std::string& name,
                        const std::string& bytes) {
  const std::string tokenizer_class = class_of(folder, name);
  TokenizerFiles files = {{name, bytes}};
  for (const char* other :
       {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}) {
    if (folder.has(other)) files.emplace_back(other, read_file(folder.path(other)));
  }
  if (!folder.has("tokenizer_config.json") && !tokenizer_class.empty()) {
    const nlohmann::ordered_json config = {{"tokenizer_class", tokenizer_class}};
    files.emplace_back("tokenizer_config.json", config.dump(2) + "\n");
  }
  return files;
}

TokenizerPtr make(const TokenizerFolder& folder, const std::string& name, const std::string& bytes,
                  TokenizerFiles files) {
  const std::string path = folder.path(name);
  SpieceModel model(bytes, path);
  SpieceLayout layout = spiece_layout(model, folder, class_of(folder, name));
  if (!layout.legacy) model = SpieceModel(without_dummy_prefix(bytes), path);
  return std::make_shared<SpieceTokenizer>(std::move(model), std::move(layout), std::move(files));
}

}  // namespace

TokenizerPtr make_spiece_tokenizer(const std::string& bytes, const nlohmann::ordered_json& config) {
  return make(TokenizerFolder::with_config(config), "spiece.model", bytes,
              {{"spiece.model", bytes}, {"tokenizer_config.json", config.dump(2) + "\n"}});
}

TokenizerPtr load_spiece_tokenizer(const TokenizerFolder& folder, const std::string& name) {
  const std::string bytes = read_file(folder.path(name));
  return make(folder, name, bytes, files_of(folder, name, bytes));
}

}  // namespace heed
