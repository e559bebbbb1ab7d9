// Unigram: the tokenization with the highest sum of scores (log-probabilities), by the Viterbi
// algorithm.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "heed/error.h"
#include "text/containers/byte_trie.h"
#include "text/tokenizer_json/subword_model.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// The score of an unknown character below the least probable token (SentencePiece's value).
constexpr double kUnknownPenalty = 10;

class Unigram : public SubwordModel {
 public:
  explicit Unigram(const JsonNode& node) {
    const JsonNode vocab = node.at("vocab");
    if (!vocab.value().is_array()) vocab.must_be("a list of tokens and scores");
    if (vocab.value().size() > size_t{kMaxId})
      vocab.corrupt("must have at most " + std::to_string(kMaxId) + " tokens");
    double lowest = std::numeric_limits<double>::infinity();
    for (const auto& entry : vocab.value()) {
      const auto id = static_cast<int32_t>(scores_.size());
      const bool fits =
          entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number();
      if (!fits) vocab.at(scores_.size()).corrupt("must be a token and its score");
      const auto& piece = entry[0].get_ref<const std::string&>();
      const auto score = entry[1].get<double>();
      vocabulary_.add(piece, id);
      scores_.push_back(score);
      trie_.insert(piece, id);
      lowest = std::min(lowest, score);
    }
    vocabulary_.finish();
    unknown_score_ = lowest - kUnknownPenalty;
    if (node.has("unk_id")) {
      unknown_id_ = static_cast<int32_t>(
          node.at("unk_id").integer(0, static_cast<int64_t>(scores_.size()) - 1));
    }
    if (node.flag("byte_fallback", false)) byte_ids_ = find_byte_ids(vocabulary_);
  }

  void encode(std::string_view text, size_t begin, size_t end, IdSink& out) const override {
    const std::string_view word = text.substr(begin, end - begin);
    // The tokens, last first.
    struct Cut {
      size_t begin, end;
      int32_t id;
    };
    std::vector<Cut> cuts;
    const std::vector<Node> nodes = best_paths(word);
    for (size_t at = word.size(); at > 0; at = nodes[at].begin) {
      const Node& node = nodes[at];
      const bool unknown = node.id == unknown_id_;
      if (unknown && !cuts.empty() && cuts.back().id == unknown_id_) {
        cuts.back().begin = node.begin;  // consecutive unknown characters become one token
      } else {
        cuts.push_back({node.begin, at, node.id});
      }
    }
    for (size_t i = cuts.size(); i-- > 0;) {
      const Cut& cut = cuts[i];
      if (cut.id == unknown_id_) {
        add_unknown(word.substr(cut.begin, cut.end - cut.begin), begin + cut.begin, out);
      } else {
        out.add(cut.id, begin + cut.begin, begin + cut.end);
      }
    }
  }

 private:
  // The best tokenization up to a byte, by its last token.
  struct Node {
    double score = 0;
    uint32_t begin = kNowhere;
    int32_t id = 0;
  };
  static constexpr uint32_t kNowhere = ~uint32_t{0};

  std::vector<Node> best_paths(std::string_view word) const {
    std::vector<Node> nodes(word.size() + 1);
    for (size_t at = 0; at < word.size();) {
      const size_t character = decode_utf8(word, at).bytes;
      const double score = nodes[at].score;
      const auto offer = [&](size_t bytes, double piece_score, int32_t id) {
        Node& node = nodes[at + bytes];
        if (node.begin == kNowhere || score + piece_score > node.score) {
          node = {score + piece_score, static_cast<uint32_t>(at), id};
        }
      };
      bool has_character = false;
      trie_.prefixes(word.substr(at), [&](size_t bytes, int32_t id) {
        has_character = has_character || bytes == character;
        offer(bytes, scores_[static_cast<size_t>(id)], id);
      });
      if (!has_character) {
        if (unknown_id_ < 0) {
          throw Error(ErrorCode::invalid_argument,
                      "a vocabulary without an unknown token must have '" +
                          std::string(word.substr(at, character)) + "'");
        }
        offer(character, unknown_score_, unknown_id_);
      }
      at += character;
    }
    return nodes;
  }

  void add_unknown(std::string_view characters, size_t begin, IdSink& out) const {
    const size_t end = begin + characters.size();
    if (const int32_t id = vocabulary_.find(characters); id >= 0) return out.add(id, begin, end);
    const bool has_bytes = std::ranges::all_of(
        characters, [this](char byte) { return byte_ids_[static_cast<unsigned char>(byte)] >= 0; });
    if (!has_bytes) return out.add(unknown_id_, begin, end);
    for (const char byte : characters) {
      out.add(byte_ids_[static_cast<unsigned char>(byte)], begin, end);
    }
  }

  std::vector<double> scores_;
  ByteTrie trie_;
  double unknown_score_ = 0;
  ByteIds byte_ids_ = no_byte_ids();
};

}  // namespace

std::unique_ptr<SubwordModel> read_unigram(const JsonNode& node) {
  return std::make_unique<Unigram>(node);
}

}  // namespace heed
