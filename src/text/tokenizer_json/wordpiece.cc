// WordPiece: greedy longest-match-first.
#include <string>

#include "heed/error.h"
#include "text/containers/byte_trie.h"
#include "text/tokenizer_json/subword_model.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

class WordPiece : public SubwordModel {
 public:
  explicit WordPiece(const JsonNode& node) {
    vocabulary_ = Vocabulary::read(node.at("vocab"));
    unknown_id_ = vocabulary_.find(node.text("unk_token", "[UNK]"));
    const std::string prefix = node.text("continuing_subword_prefix", "##");
    if (node.has("max_input_chars_per_word")) {
      max_characters_ =
          static_cast<size_t>(node.at("max_input_chars_per_word").integer(0, INT32_MAX));
    }
    for (int32_t id = 0; id < vocabulary_.size(); ++id) {
      if (!vocabulary_.has(id)) continue;
      const std::string_view piece = vocabulary_.piece(id);
      first_.insert(piece, id);
      if (piece.starts_with(prefix)) rest_.insert(piece.substr(prefix.size()), id);
    }
  }

  void encode(std::string_view text, size_t begin, size_t end, IdSink& out) const override {
    const std::string_view word = text.substr(begin, end - begin);
    if (!is_too_long(word)) {
      // Fast path: most words are tokens.
      if (const int32_t whole = vocabulary_.find(word); whole >= 0) {
        return out.add(whole, begin, end);
      }
      if (encode_pieces(word, begin, out)) return;
    }
    if (unknown_id_ < 0) {
      throw Error(
          ErrorCode::invalid_argument,
          "a vocabulary without an unknown token must have tokens for '" + std::string(word) + "'");
    }
    out.add(unknown_id_, begin, end);
  }

 private:
  bool is_too_long(std::string_view word) const {
    return word.size() > max_characters_ && count_code_points(word) > max_characters_;
  }

  bool encode_pieces(std::string_view word, size_t begin, IdSink& out) const {
    const size_t ids_before = out.ids.size(), spans_before = out.spans.size();
    size_t at = 0;
    while (at < word.size()) {
      const ByteTrie::Match match = (at == 0 ? first_ : rest_).longest_prefix(word.substr(at));
      if (match.value < 0) {
        out.ids.resize(ids_before);
        out.spans.resize(spans_before);
        return false;
      }
      out.add(match.value, begin + at, begin + at + match.bytes);
      at += match.bytes;
    }
    return true;
  }

  ByteTrie first_, rest_;  // tokens that begin a word, and continuations without their prefix
  size_t max_characters_ = 100;
};

}  // namespace

std::unique_ptr<SubwordModel> read_wordpiece(const JsonNode& node) {
  return std::make_unique<WordPiece>(node);
}

}  // namespace heed
