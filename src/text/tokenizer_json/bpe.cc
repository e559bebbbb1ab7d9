// BPE: a word starts as characters (or bytes), and the adjacent pair with the lowest merge rank is
// merged until no pair has a merge.
//
// There is no cache of words, which threads would have to share. Instead, loading finds the tokens
// that encode to themselves: most words of a text are one of them and cost one look-up.
#include <algorithm>
#include <array>
#include <queue>
#include <string>
#include <vector>

#include "text/tokenizer_json/merge_table.h"
#include "text/tokenizer_json/subword_model.h"
#include "text/unicode/byte_alphabet.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

struct Symbol {
  int32_t id = 0;
  uint32_t begin = 0, end = 0;  // bytes of the word
};

// Words of up to this many bytes are merged by scanning all pairs, which is fastest for few; longer
// ones use a heap: O(n log n).
constexpr size_t kShortBytes = 48;

size_t merge_short(const MergeTable& merges, Symbol* symbols, size_t count) {
  std::array<Merge, kShortBytes> pairs;  // the merge of symbols i and i + 1
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = merges.find(symbols[i].id, symbols[i + 1].id);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == Merge::kNone) break;
    symbols[best].id = pairs[best].id;
    symbols[best].end = symbols[best + 1].end;
    --count;
    for (size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (size_t i = best; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
    if (best > 0) pairs[best - 1] = merges.find(symbols[best - 1].id, symbols[best].id);
    if (best + 1 < count) pairs[best] = merges.find(symbols[best].id, symbols[best + 1].id);
  }
  return count;
}

void merge_long(const MergeTable& merges, std::vector<Symbol>& symbols) {
  const auto count = static_cast<uint32_t>(symbols.size());
  const uint32_t none = count;
  std::vector<uint32_t> before(count), after(count);
  for (uint32_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? none : i - 1;
    after[i] = i + 1;
  }
  // The merge of symbols i and i + 1 as one number: its rank in the upper half, then i.
  using Candidate = uint64_t;
  const auto merge_at = [&](uint32_t i) {
    return after[i] == none ? Merge{} : merges.find(symbols[i].id, symbols[after[i]].id);
  };
  std::vector<Candidate> first;
  first.reserve(count);
  for (uint32_t i = 0; i + 1 < count; ++i) {
    const Merge merge = merge_at(i);
    if (merge.rank != Merge::kNone) first.push_back(Candidate{merge.rank} << 32 | i);
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue({},
                                                                               std::move(first));
  constexpr int32_t kGone = -1;
  while (!queue.empty()) {
    const Candidate candidate = queue.top();
    queue.pop();
    const auto i = static_cast<uint32_t>(candidate);
    if (symbols[i].id == kGone) continue;
    const Merge merge = merge_at(i);
    if (merge.rank != candidate >> 32) continue;  // stale: its symbols were merged
    const uint32_t right = after[i];
    symbols[i].id = merge.id;
    symbols[i].end = symbols[right].end;
    symbols[right].id = kGone;
    after[i] = after[right];
    if (after[i] != none) before[after[i]] = i;
    for (const uint32_t left : {before[i], i}) {
      if (left == none) continue;
      const Merge next = merge_at(left);
      if (next.rank != Merge::kNone) queue.push(Candidate{next.rank} << 32 | left);
    }
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.id == kGone; });
}

class Bpe : public SubwordModel {
 public:
  explicit Bpe(const JsonNode& node) {
    vocabulary_ = Vocabulary::read(node.at("vocab"));
    prefix_ = node.text("continuing_subword_prefix", "");
    suffix_ = node.text("end_of_word_suffix", "");
    fuse_unknown_ = node.flag("fuse_unk", false);
    ignore_merges_ = node.flag("ignore_merges", false);
    byte_fallback_ = node.flag("byte_fallback", false);
    if (byte_fallback_) byte_ids_ = find_byte_ids(vocabulary_);
    if (node.has("unk_token")) unknown_id_ = vocabulary_.find(node.text("unk_token"));
    read_merges(node.at("merges"));
    for (unsigned c = 0; c < 128; ++c) {
      const char one = static_cast<char>(c);
      ascii_ids_[c] = vocabulary_.find({&one, 1});
    }
    find_whole_words();
  }

  bool takes_byte_alphabet() const override {
    return prefix_.empty() && suffix_.empty() && !byte_fallback_;
  }

  void take_bytes() override {
    takes_bytes_ = true;
    cuts_at_marks_ = false;
    for (unsigned byte = 0; byte < 256; ++byte) {
      byte_ids_[byte] = vocabulary_.find(byte_alphabet()[byte]);
    }
    find_whole_words();
  }

  void encode(std::string_view text, size_t begin, size_t end, IdSink& out) const override {
    if (encode_whole(text, begin, end, out)) return;
    if (cuts_at_marks_ && end - begin > kMark.size()) return encode_parts(text, begin, end, out);
    encode_word(text, begin, end, out);
  }

 private:
  static constexpr std::string_view kMark = "▁";  // SentencePiece's word boundary

  void read_merges(const JsonNode& node) {
    if (!node.value().is_array()) node.must_be("a list of merges");
    merges_ = MergeTable(node.value().size());
    bool crosses_marks = vocabulary_.find(kMark) < 0;
    uint32_t rank = 0;
    for (const auto& entry : node.value()) {
      const auto [left, right] = pair_of(entry, node, rank);
      const int32_t left_id = id_of(left, node, rank), right_id = id_of(right, node, rank);
      if (right.size() < prefix_.size())
        node.at(rank).corrupt("must not be shorter than the prefix");
      const std::string joined = std::string(left).append(right.substr(prefix_.size()));
      merges_.insert(left_id, right_id, {rank, id_of(joined, node, rank)});
      crosses_marks = crosses_marks || has_inner_mark(joined);
      ++rank;
    }
    cuts_at_marks_ = !crosses_marks && prefix_.empty() && suffix_.empty();
  }

  // "left right", or ["left", "right"] where tokens may have spaces.
  static std::pair<std::string_view, std::string_view> pair_of(const nlohmann::json& entry,
                                                               const JsonNode& node, size_t index) {
    if (entry.is_string()) {
      const std::string_view both = entry.get_ref<const std::string&>();
      const size_t space = both.find(' ');
      if (space == both.npos || both.find(' ', space + 1) != both.npos) {
        node.at(index).corrupt("must be two tokens separated by a space, got " +
                               in_single_quotes(both));
      }
      return {both.substr(0, space), both.substr(space + 1)};
    }
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_string()) {
      node.at(index).corrupt("must be two tokens");
    }
    return {entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>()};
  }

  int32_t id_of(std::string_view piece, const JsonNode& node, size_t index) const {
    const int32_t id = vocabulary_.find(piece);
    if (id < 0) {
      node.at(index).corrupt(in_single_quotes(piece) + " is not in the vocabulary");
    }
    return id;
  }

  static bool has_inner_mark(std::string_view piece) { return next_part(piece, 0) < piece.size(); }

  // The start of the next part after `at`: the first mark that follows another character.
  static size_t next_part(std::string_view text, size_t at) {
    while (text.substr(at).starts_with(kMark)) at += kMark.size();
    return std::min(text.find(kMark, at), text.size());
  }

  // Finds the tokens that encode to themselves; with ignore_merges, all tokens do.
  void find_whole_words() {
    is_whole_.assign(static_cast<size_t>(vocabulary_.size()), false);
    whole_bytes_ = {};
    whole_storage_.clear();
    // The map points into the storage: it must not be reallocated.
    whole_storage_.reserve(static_cast<size_t>(vocabulary_.size()));
    IdSink ids;
    for (int32_t id = 0; id < vocabulary_.size(); ++id) {
      if (!vocabulary_.has(id)) continue;
      std::string word(vocabulary_.piece(id));
      if (takes_bytes_) {
        const auto bytes = bytes_of_alphabet(word);
        if (!bytes) continue;
        word = *bytes;
      }
      if (word.empty()) continue;
      if (!ignore_merges_) {
        ids.ids.clear();
        encode_word(word, 0, word.size(), ids);
        if (ids.ids != std::vector<int32_t>{id}) continue;
      }
      is_whole_[static_cast<size_t>(id)] = true;
      if (takes_bytes_) {
        whole_storage_.push_back(std::move(word));
        whole_bytes_.insert(whole_storage_.back(), id);
      }
    }
  }

  bool encode_whole(std::string_view text, size_t begin, size_t end, IdSink& out) const {
    const std::string_view word = text.substr(begin, end - begin);
    int32_t id = -1;
    if (takes_bytes_) {
      id = whole_bytes_.find(word);
    } else if (ignore_merges_ || suffix_.empty()) {
      id = vocabulary_.find(word);
      if (id >= 0 && !is_whole_[static_cast<size_t>(id)]) id = -1;
    }
    if (id < 0) return false;
    out.add(id, begin, end);
    return true;
  }

  // No merge crosses a word boundary, so a long text is split there: the same ids from shorter parts.
  void encode_parts(std::string_view text, size_t begin, size_t end, IdSink& out) const {
    const std::string_view whole = text.substr(0, end);
    while (begin < end) {
      const size_t next = next_part(whole, begin);
      if (!encode_whole(text, begin, next, out)) encode_word(text, begin, next, out);
      begin = next;
    }
  }

  void encode_word(std::string_view text, size_t begin, size_t end, IdSink& out) const {
    const std::string_view word = text.substr(begin, end - begin);
    if (word.size() <= kShortBytes) {
      std::array<Symbol, kShortBytes> symbols;
      size_t count = 0;
      start(word, [&](const Symbol& symbol) { symbols[count++] = symbol; });
      count = merge_short(merges_, symbols.data(), count);
      for (size_t i = 0; i < count; ++i) {
        out.add(symbols[i].id, begin + symbols[i].begin, begin + symbols[i].end);
      }
      return;
    }
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    start(word, [&](const Symbol& symbol) { symbols.push_back(symbol); });
    merge_long(merges_, symbols);
    for (const Symbol& symbol : symbols) {
      out.add(symbol.id, begin + symbol.begin, begin + symbol.end);
    }
  }

  // The initial symbols of a word: at most one per byte.
  template <class Push>
  void start(std::string_view word, const Push& push) const {
    Symbol unknown;  // a run of unknown characters
    bool has_unknown = false;
    for (size_t at = 0; at < word.size();) {
      const size_t bytes = takes_bytes_ ? 1 : decode_utf8(word, at).bytes;
      const Symbol symbol{id_at(word, at, bytes), static_cast<uint32_t>(at),
                          static_cast<uint32_t>(at + bytes)};
      at += bytes;
      if (symbol.id >= 0) {
        if (has_unknown) push(unknown);
        has_unknown = false;
        push(symbol);
      } else if (byte_fallback_ && has_byte_ids(word, symbol)) {
        for (uint32_t i = symbol.begin; i < symbol.end; ++i) {
          push({byte_ids_[static_cast<unsigned char>(word[i])], i, i + 1});
        }
      } else if (unknown_id_ >= 0) {
        if (has_unknown && fuse_unknown_) {
          unknown.end = symbol.end;
        } else {
          if (has_unknown) push(unknown);
          unknown = {unknown_id_, symbol.begin, symbol.end};
          has_unknown = true;
        }
      }  // without an unknown token, it is dropped
    }
    if (has_unknown) push(unknown);
  }

  int32_t id_at(std::string_view word, size_t at, size_t bytes) const {
    const auto first = static_cast<unsigned char>(word[at]);
    if (takes_bytes_) return byte_ids_[first];
    const bool is_first = at == 0, is_last = at + bytes == word.size();
    const bool marked = (!is_first && !prefix_.empty()) || (is_last && !suffix_.empty());
    if (!marked) {
      return bytes == 1 && first < 128 ? ascii_ids_[first]
                                       : vocabulary_.find(word.substr(at, bytes));
    }
    std::string piece = is_first ? std::string() : prefix_;
    piece += word.substr(at, bytes);
    if (is_last) piece += suffix_;
    return vocabulary_.find(piece);
  }

  bool has_byte_ids(std::string_view word, const Symbol& symbol) const {
    for (size_t i = symbol.begin; i < symbol.end; ++i) {
      if (byte_ids_[static_cast<unsigned char>(word[i])] < 0) return false;
    }
    return true;
  }

  MergeTable merges_;
  std::string prefix_, suffix_;
  bool fuse_unknown_ = false, ignore_merges_ = false, byte_fallback_ = false;
  bool takes_bytes_ = false, cuts_at_marks_ = false;
  // <0x00> … <0xFF> with byte_fallback, the byte alphabet's tokens with takes_bytes_.
  ByteIds byte_ids_ = no_byte_ids();
  std::array<int32_t, 128> ascii_ids_{};
  std::vector<bool> is_whole_;  // by id: the token encodes to itself
  StringMap whole_bytes_;       // the same as bytes, with takes_bytes_
  std::vector<std::string> whole_storage_;
};

}  // namespace

std::unique_ptr<SubwordModel> read_bpe(const JsonNode& node) { return std::make_unique<Bpe>(node); }

}  // namespace heed
