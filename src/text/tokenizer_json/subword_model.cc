#include "text/tokenizer_json/subword_model.h"

#include "heed/error.h"

namespace heed {
namespace {

// Whole words, and one id for unknown ones.
class WordLevel : public SubwordModel {
 public:
  explicit WordLevel(const JsonNode& node) {
    vocabulary_ = Vocabulary::read(node.at("vocab"));
    unknown_id_ = vocabulary_.find(node.text("unk_token", "<unk>"));
  }

  void encode(std::string_view text, size_t begin, size_t end, IdSink& out) const override {
    int32_t id = vocabulary_.find(text.substr(begin, end - begin));
    if (id < 0) id = unknown_id_;
    if (id < 0) {
      throw Error(ErrorCode::invalid_argument, "a vocabulary without an unknown token must have '" +
                                                   std::string(text.substr(begin, end - begin)) +
                                                   "'");
    }
    out.add(id, begin, end);
  }
};

}  // namespace

std::unique_ptr<SubwordModel> read_word_level(const JsonNode& node) {
  return std::make_unique<WordLevel>(node);
}

std::unique_ptr<SubwordModel> read_subword_model(const JsonNode& node) {
  std::string type = node.text("type", "");
  if (type.empty()) {
    // Files from before 2020 do not name the type.
    if (node.has("merges")) {
      type = "BPE";
    } else if (node.has("vocab") && node.at("vocab").value().is_array()) {
      type = "Unigram";
    } else {
      type = node.has("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
    }
  }
  if (type == "BPE") return read_bpe(node);
  if (type == "WordPiece") return read_wordpiece(node);
  if (type == "Unigram") return read_unigram(node);
  if (type == "WordLevel") return read_word_level(node);
  node.unsupported(type, "BPE, WordPiece, Unigram, WordLevel");
}

}  // namespace heed
