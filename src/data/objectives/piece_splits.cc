#include "data/objectives/piece_splits.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "heed/error.h"

namespace heed {

namespace {

constexpr std::string_view kInsideWord = "##";  // WordPiece

// Where characters of UTF-8 begin.
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

bool is_one_character(std::string_view text) {
  return std::count_if(text.begin(), text.end(), begins_character) <= 1;
}

bool is_ascii_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
}

// Whether "##" is WordPiece's continuation prefix and not text: decoding such a piece after another
// removes it.
bool marks_inside_words(const Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::string piece = tokenizer.piece(id);
    if (!piece.starts_with(kInsideWord) || tokenizer.begins_word(id)) continue;
    if (!is_ascii_word(std::string_view(piece).substr(kInsideWord.size()))) continue;
    return !tokenizer.decode(std::array{id, id}).ends_with(piece);
  }
  return false;
}

}  // namespace

PieceSplits::PieceSplits(const Tokenizer& tokenizer)
    : parts_(static_cast<size_t>(tokenizer.vocabulary_size())), most_(parts_.size()) {
  const bool marks_inside = marks_inside_words(tokenizer);
  bool any = false;
  for (size_t id = 0; id < parts_.size(); ++id) {
    parts_[id] = find_parts(tokenizer, static_cast<int32_t>(id), marks_inside);
    any = any || parts_[id].left >= 0;
  }
  if (!any) {
    throw Error(ErrorCode::invalid_argument,
                "subword_dropout: the tokenizer must have tokens that consist of two others",
                "use a subword tokenizer: bpe, unigram, byte-bpe or wordpiece");
  }
  for (size_t id = 0; id < parts_.size(); ++id) {
    walk(
        static_cast<int32_t>(id), [] { return true; }, [&](int32_t) { ++most_[id]; });
  }
}

// Vocabularies are in merge order or by frequency, so of all splits the one whose later part has the
// lowest id was most likely merged. Single characters exist before all merges, whatever their id.
PieceSplits::Parts PieceSplits::find_parts(const Tokenizer& tokenizer, int32_t id,
                                           bool marks_inside) {
  Parts best;
  if (tokenizer.decode(std::span(&id, 1)).empty()) return best;  // special
  const std::string piece = tokenizer.piece(id);
  const bool inside = marks_inside && piece.starts_with(kInsideWord) && !tokenizer.begins_word(id);
  const auto rank = [](int32_t part, std::string_view text) {
    return is_one_character(text) ? -1 : part;
  };
  int32_t best_rank = std::numeric_limits<int32_t>::max();
  for (size_t cut = inside ? kInsideWord.size() + 1 : 1; cut < piece.size(); ++cut) {
    if (!begins_character(piece[cut])) continue;
    const std::string_view left = std::string_view(piece).substr(0, cut);
    const std::string_view right = std::string_view(piece).substr(cut);
    const auto left_id = tokenizer.find(left);
    if (!left_id) continue;
    auto right_id = tokenizer.find(right);
    if (marks_inside && (!right_id || tokenizer.begins_word(*right_id))) {
      right_id = tokenizer.find(std::string(kInsideWord).append(right));
    }
    if (!right_id || tokenizer.begins_word(*right_id)) continue;
    if (tokenizer.begins_word(*left_id) != tokenizer.begins_word(id)) continue;
    const int32_t later = std::max(rank(*left_id, left), rank(*right_id, right));
    if (later < best_rank) {
      best_rank = later;
      best = {*left_id, *right_id};
    }
  }
  return best;
}

// splits(): whether to split a token that can be split.
template <class Splits, class Take>
void PieceSplits::walk(int32_t id, const Splits& splits, const Take& take) const {
  const Parts& parts = parts_[static_cast<size_t>(id)];
  if (parts.left < 0 || !splits()) {
    take(id);
    return;
  }
  walk(parts.left, splits, take);
  walk(parts.right, splits, take);
}

void PieceSplits::append(std::span<const int32_t> ids, double rate, Random& random,
                         std::vector<int32_t>& to) const {
  const auto splits = [&] { return random.uniform() < rate; };
  for (const int32_t id : ids) {
    walk(id, splits, [&](int32_t part) { to.push_back(part); });
  }
}

int64_t PieceSplits::count(std::span<const int32_t> ids, double rate, Random& random) const {
  const auto splits = [&] { return random.uniform() < rate; };
  int64_t count = 0;
  for (const int32_t id : ids) {
    walk(id, splits, [&](int32_t) { ++count; });
  }
  return count;
}

void PieceSplits::append_most(std::span<const int32_t> ids, std::vector<int32_t>& to) const {
  for (const int32_t id : ids) {
    walk(
        id, [] { return true; }, [&](int32_t part) { to.push_back(part); });
  }
}

int64_t PieceSplits::most(std::span<const int32_t> ids) const {
  int64_t count = 0;
  for (const int32_t id : ids) count += most_[static_cast<size_t>(id)];
  return count;
}

}  // namespace heed
