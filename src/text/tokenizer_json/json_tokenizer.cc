#include "text/tokenizer_json/json_tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "heed/error.h"
#include "text/tokenizer_json/added_tokens.h"
#include "text/tokenizer_json/decoders.h"
#include "text/tokenizer_json/json_node.h"
#include "text/tokenizer_json/normalizers.h"
#include "text/tokenizer_json/post_processor.h"
#include "text/tokenizer_json/pre_tokenizers.h"
#include "text/tokenizer_json/subword_model.h"
#include "text/tokenizer_json/tokenizer_parts.h"
#include "text/tokenizers/tokenizer_folder.h"
#include "text/unicode/mapped_text.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// Offsets have 32 bits, and normalization can lengthen a text (U+FDFA becomes 18 characters).
constexpr size_t kMaxTextBytes = size_t{1} << 30;

class JsonTokenizer : public Tokenizer {
 public:
  JsonTokenizer(const JsonNode& root, const JsonTokenizerOptions& options);

  Encoding encode(std::string_view text, const EncodeOptions& options) const override {
    const Encoding plain = encode_plain(text);
    Encoding encoding;
    post_processor_.apply(plain, nullptr, options.special_tokens, encoding);
    return encoding;
  }

  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options) const override {
    const Encoding plain_first = encode_plain(first), plain_second = encode_plain(second);
    Encoding encoding;
    post_processor_.apply(plain_first, &plain_second, options.special_tokens, encoding);
    return encoding;
  }

  std::vector<int32_t> encode_ids(std::string_view text,
                                  const EncodeOptions& options) const override {
    Tokens tokens;
    if (keeps_bytes_ || is_utf8(text)) {
      encode_parts(text, tokens);
    } else {
      encode_parts(repair_utf8(text), tokens);
    }
    if (post_processor_.is_plain()) return std::move(tokens.sink.ids);
    std::vector<int32_t> ids;
    ids.reserve(tokens.sink.ids.size() + post_processor_.single.size());
    post_processor_.apply(tokens.sink.ids, options.special_tokens, ids);
    return ids;
  }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override;

  int64_t vocabulary_size() const override { return size_; }

  std::string piece(int32_t id) const override {
    check_id(id, size_);
    const auto added = added_.find(id);
    if (added != added_.end()) return added->second.content;
    return vocabulary().has(id) ? std::string(vocabulary().piece(id)) : std::string();
  }

  std::optional<int32_t> find(std::string_view piece) const override {
    const auto added = added_ids_.find(std::string(piece));
    if (added != added_ids_.end()) return added->second;
    const int32_t id = vocabulary().find(piece);
    return id < 0 ? std::nullopt : std::optional(id);
  }

  const SpecialIds& special_ids() const override { return special_ids_; }

  bool begins_word(int32_t id) const override {
    const std::string text = piece(id);
    if (added_.contains(id)) return true;
    if (!continuing_prefix_.empty()) return !text.starts_with(continuing_prefix_);
    // A line break or tab also begins a word.
    if (keeps_bytes_)
      return text.starts_with("Ġ") || text.starts_with("Ċ") || text.starts_with("ĉ");
    return !has_marks_ || text.starts_with("▁");
  }

  void save(const std::string& folder) const override {
    for (const NamedFile& file : files_) write_tokenizer_file(folder, file.name, file.content);
  }

 private:
  struct Tokens {
    IdSink sink;
    std::vector<TextSpan> offsets;  // if requested
  };

  const Vocabulary& vocabulary() const { return model_->vocabulary(); }

  void add_tokens(const JsonNode& node);
  void find_special_ids(const TokenizerFolder* folder);

  Encoding encode_plain(std::string_view text) const;
  void encode_parts(std::string_view text, Tokens& out) const;
  void encode_segment(std::string_view text, size_t begin, Tokens& out) const;

  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<SubwordModel> model_;
  std::unique_ptr<Decoder> decoder_;
  PostProcessor post_processor_;
  AddedTokenFinder raw_tokens_, normalized_tokens_;
  std::unordered_map<int32_t, AddedToken> added_;
  std::unordered_map<std::string, int32_t> added_ids_;
  bool keeps_bytes_ = false;    // the subword model gets words as raw bytes
  bool needs_sources_ = false;  // even when offsets are not requested
  std::string continuing_prefix_;
  bool has_marks_ = false;  // tokens that begin a word begin with ▁
  int64_t size_ = 0;
  SpecialIds special_ids_;
  std::vector<NamedFile> files_;
};

JsonTokenizer::JsonTokenizer(const JsonNode& root, const JsonTokenizerOptions& options)
    : files_(options.files) {
  if (root.has("normalizer")) normalizer_ = read_normalizer(root.at("normalizer"));
  if (root.has("pre_tokenizer")) pre_tokenizer_ = read_pre_tokenizer(root.at("pre_tokenizer"));
  if (root.has("post_processor")) {
    post_processor_ = read_post_processor(root.at("post_processor"));
  }
  if (root.has("decoder")) decoder_ = read_decoder(root.at("decoder"));
  const JsonNode model = root.at("model");
  model_ = read_subword_model(model);
  // Both or neither: the pre-tokenizer skips the byte alphabet only if the model takes bytes.
  if (pre_tokenizer_ && model_->takes_byte_alphabet() && pre_tokenizer_->keep_bytes()) {
    model_->take_bytes();
    keeps_bytes_ = true;
  }
  needs_sources_ = normalizer_ && pre_tokenizer_ && pre_tokenizer_->needs_sources();
  size_ = vocabulary().size();
  if (root.has("added_tokens")) add_tokens(root.at("added_tokens"));
  const bool is_wordpiece = model.text("type", "") == "WordPiece";
  continuing_prefix_ = model.text("continuing_subword_prefix", is_wordpiece ? "##" : "");
  has_marks_ = vocabulary().find("▁") >= 0;
  find_special_ids(options.folder);
}

void JsonTokenizer::add_tokens(const JsonNode& node) {
  std::vector<AddedToken> tokens = read_added_tokens(node);
  // Special tokens first: they win over equal ones.
  std::stable_partition(tokens.begin(), tokens.end(),
                        [](const AddedToken& token) { return token.is_special; });
  for (AddedToken& token : tokens) {
    // A token of the vocabulary keeps its id.
    if (const int32_t id = vocabulary().find(token.content); id >= 0) token.id = id;
    const auto [other, is_new] = added_.emplace(token.id, token);
    const bool taken = vocabulary().has(token.id) && vocabulary().piece(token.id) != token.content;
    if (taken || (!is_new && other->second.content != token.content)) {
      node.corrupt(in_single_quotes(token.content) + " has the id " + std::to_string(token.id) +
                   " of " +
                   in_single_quotes(taken ? vocabulary().piece(token.id) : other->second.content));
    }
    added_ids_.emplace(token.content, token.id);
    size_ = std::max<int64_t>(size_, token.id + 1);
    if (token.normalized) {
      normalized_tokens_.add(token, normalizer_.get());
    } else {
      raw_tokens_.add(token, nullptr);
    }
  }
}

void JsonTokenizer::find_special_ids(const TokenizerFolder* folder) {
  const struct {
    const char* key;
    int32_t SpecialIds::*id;
    std::array<const char*, 6> names;  // defaults where the folder names none
  } kinds[] = {
      {"pad_token", &SpecialIds::pad, {"<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>"}},
      {"unk_token", &SpecialIds::unknown, {"<unk>", "[UNK]"}},
      {"bos_token", &SpecialIds::begin, {"<s>", "<bos>", "[BOS]", "<|begin_of_text|>"}},
      {"eos_token",
       &SpecialIds::end,
       {"</s>", "<eos>", "[EOS]", "<|end_of_text|>", "<|endoftext|>", "<|im_end|>"}},
      {"cls_token", &SpecialIds::classify, {"[CLS]"}},
      {"sep_token", &SpecialIds::separate, {"[SEP]"}},
      {"mask_token", &SpecialIds::mask, {"[MASK]", "<mask>"}},
  };
  for (const auto& kind : kinds) {
    int32_t& id = special_ids_.*kind.id;
    if (folder != nullptr) {
      if (const auto text = folder->token(kind.key)) id = find(*text).value_or(-1);
    }
    for (const char* name : kind.names) {
      if (id < 0 && name != nullptr) id = find(name).value_or(-1);
    }
  }
  if (model_->unknown_id() >= 0) special_ids_.unknown = model_->unknown_id();
}

Encoding JsonTokenizer::encode_plain(std::string_view text) const {
  Tokens tokens;
  tokens.sink.wants_spans = true;
  MappedText repaired;
  const bool repairs = !keeps_bytes_ && !is_utf8(text);
  if (repairs) repaired = map_repaired(text);
  encode_parts(repairs ? std::string_view(repaired.text) : text, tokens);
  for (TextSpan& span : tokens.offsets) {
    span = {repaired.source_position(static_cast<size_t>(span.begin)),
            repaired.source_position(static_cast<size_t>(span.end))};
  }
  Encoding encoding;
  encoding.ids = std::move(tokens.sink.ids);
  encoding.offsets = std::move(tokens.offsets);
  return encoding;
}

void JsonTokenizer::encode_parts(std::string_view text, Tokens& out) const {
  if (text.size() > kMaxTextBytes) {
    throw Error(ErrorCode::invalid_argument,
                "a text must not exceed " + std::to_string(kMaxTextBytes) + " bytes, got " +
                    std::to_string(text.size()),
                "split it into lines or documents");
  }
  raw_tokens_.cut(text, [&](const AddedTokenFinder::Part& part) {
    if (part.id < 0) {
      encode_segment(text.substr(part.begin, part.end - part.begin), part.begin, out);
      return;
    }
    out.sink.ids.push_back(part.id);
    if (out.sink.wants_spans) {
      out.offsets.push_back({static_cast<int64_t>(part.begin), static_cast<int64_t>(part.end)});
    }
  });
}

// `text` begins at byte `begin` of the source.
void JsonTokenizer::encode_segment(std::string_view text, size_t begin, Tokens& out) const {
  IdSink& sink = out.sink;
  SplitText split;
  split.text = AlignedText(text, begin, sink.wants_spans || needs_sources_);
  split.source_begin = begin;
  if (normalizer_) normalizer_->apply(split.text);
  const std::string& normalized = split.text.text;
  if (normalized.size() > UINT32_MAX / 4) {
    throw Error(ErrorCode::invalid_argument, "the normalized text must not exceed 2^32 bytes",
                "split it into lines or documents");
  }
  normalized_tokens_.cut(normalized, [&split](const AddedTokenFinder::Part& part) {
    split.pieces.push_back(
        {static_cast<uint32_t>(part.begin), static_cast<uint32_t>(part.end), part.id});
  });
  if (pre_tokenizer_) pre_tokenizer_->split(split);

  sink.spans.clear();
  std::vector<bool> is_added;
  for (const TextPiece& piece : split.pieces) {
    if (piece.id >= 0) {
      sink.add(piece.id, piece.begin, piece.end);
    } else {
      model_->encode(split.text.text, piece.begin, piece.end, sink);
    }
    if (sink.wants_spans) is_added.resize(sink.spans.size(), piece.id >= 0);
  }
  for (size_t i = 0; i < sink.spans.size(); ++i) {
    TextSpan span = split.text.source(sink.spans[i].begin, sink.spans[i].end);
    if (post_processor_.trim_offsets && !is_added[i]) {
      const auto is_blank = [&](int64_t at) {
        return text[static_cast<size_t>(at) - begin] == ' ';
      };
      while (span.begin < span.end && is_blank(span.begin)) ++span.begin;
      while (span.begin < span.end && is_blank(span.end - 1)) --span.end;
    }
    out.offsets.push_back(span);
  }
}

std::string JsonTokenizer::decode(std::span<const int32_t> ids,
                                  const DecodeOptions& options) const {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const int32_t id : ids) {
    check_id(id, size_);
    const auto added = added_.find(id);
    if (added != added_.end()) {
      if (options.skip_special_tokens && added->second.is_special) continue;
      pieces.push_back(added->second.content);
    } else if (vocabulary().has(id)) {
      pieces.emplace_back(vocabulary().piece(id));
    }  // unused ids decode to nothing: models pad their vocabulary
  }
  if (decoder_) decoder_->apply(pieces);
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!decoder_ && i > 0) text += ' ';
    text += pieces[i];
  }
  return text;
}

}  // namespace

TokenizerPtr make_json_tokenizer(const nlohmann::json& document,
                                 const JsonTokenizerOptions& options) {
  const JsonNode root(document, options.place);
  return std::make_shared<JsonTokenizer>(root, options);
}

}  // namespace heed
