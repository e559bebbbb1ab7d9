// A small tokenizer for tests: one id per word or piece of a listed vocabulary.
//
//   "un happy" → un, happy          words are split at spaces
//   "unhappy"  → un ##happy         longest pieces first, as WordPiece does
#pragma once

#include <string>
#include <vector>

#include "heed/error.h"
#include "heed/tokenizer.h"

namespace heed {

// Ids: 0 <pad>, 1 </s>, 2 <unk>, 3 <mask>, 4 [CLS], 5 [SEP], then the pieces.
// The template: bert ? [CLS] a [SEP] b [SEP] : a </s>.
class TestingTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t kPad = 0, kEnd = 1, kUnknown = 2, kMask = 3, kClassify = 4,
                           kSeparate = 5, kFirstPiece = 6;

  explicit TestingTokenizer(std::vector<std::string> pieces, bool bert = false) : bert_(bert) {
    pieces_ = {"<pad>", "</s>", "<unk>", "<mask>", "[CLS]", "[SEP]"};
    pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
    special_ = {.pad = kPad, .unknown = kUnknown, .end = kEnd, .mask = kMask};
    if (bert) {
      special_.classify = kClassify;
      special_.separate = kSeparate;
    }
  }

  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const override {
    Encoding e;
    if (options.special_tokens && bert_) add_special(e, kClassify, 0);
    add_text(e, text, 0);
    if (options.special_tokens) add_special(e, bert_ ? kSeparate : kEnd, 0);
    return e;
  }
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options = {}) const override {
    Encoding e = encode(first, options);
    add_text(e, second, 1);
    if (options.special_tokens) add_special(e, bert_ ? kSeparate : kEnd, 1);
    return e;
  }
  std::vector<int32_t> encode_ids(std::string_view text,
                                  const EncodeOptions& options = {}) const override {
    return encode(text, options).ids;
  }
  std::string decode(std::span<const int32_t> ids,
                     const DecodeOptions& options = {}) const override {
    std::string text;
    for (const int32_t id : ids) {
      if (options.skip_special_tokens && id < kFirstPiece) continue;
      const std::string p = piece(id);
      const bool joined = p.starts_with("##");
      if (!text.empty() && !joined) text += ' ';
      text += joined ? p.substr(2) : p;
    }
    return text;
  }
  int64_t vocabulary_size() const override { return std::ssize(pieces_); }
  std::string piece(int32_t id) const override { return pieces_.at(static_cast<size_t>(id)); }
  std::optional<int32_t> find(std::string_view piece) const override {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i] == piece) return static_cast<int32_t>(i);
    }
    return std::nullopt;
  }
  const SpecialIds& special_ids() const override { return special_; }
  bool begins_word(int32_t id) const override { return !piece(id).starts_with("##"); }
  void save(const std::string&) const override {}

 private:
  static void add(Encoding& e, int32_t id, TextSpan span, int32_t type, bool special) {
    e.ids.push_back(id);
    e.offsets.push_back(span);
    e.types.push_back(type);
    e.is_special.push_back(special);
  }
  static void add_special(Encoding& e, int32_t id, int32_t type) { add(e, id, {}, type, true); }

  void add_text(Encoding& e, std::string_view text, int32_t type) const {
    size_t begin = 0;
    while ((begin = text.find_first_not_of(" \n", begin)) != std::string_view::npos) {
      const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
      add_word(e, text, begin, end, type);
      begin = end;
    }
  }
  void add_word(Encoding& e, std::string_view text, size_t begin, size_t end, int32_t type) const {
    bool first = true;
    while (begin < end) {
      size_t size = end - begin;
      std::optional<int32_t> id;
      for (; size > 0 && !id; --size) {
        id = find((first ? "" : "##") + std::string(text.substr(begin, size)));
        if (id) break;
      }
      if (!id) {  // the rest of the word is unknown
        size = end - begin;
        id = kUnknown;
      }
      add(e, *id, {static_cast<int64_t>(begin), static_cast<int64_t>(begin + size)}, type, false);
      begin += size;
      first = false;
    }
  }

  bool bert_;
  std::vector<std::string> pieces_;
  SpecialIds special_;
};

}  // namespace heed
