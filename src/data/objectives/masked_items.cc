// Masked language modeling: documents, full sentences (RoBERTa), sentence pairs (BERT).
#include <algorithm>
#include <string>

#include "base/check.h"
#include "data/objectives/items.h"
#include "data/objectives/masking.h"
#include "data/objectives/sentence_pairs.h"
#include "heed/error.h"

namespace heed {

namespace {

// Shared: the special tokens around the text, and masking.
class MaskedItems : public Items {
 public:
  explicit MaskedItems(const ItemsInput& input)
      : input_(input), ids_(resolve_role_ids(input.objective(), input.tokenizer)) {
    const ObjectiveOptions& o = input.objective();
    masking_ = {.rate = o.mask_rate,
                .mask_share = o.mask_share,
                .random_share = o.random_share,
                .whole_words = o.whole_words,
                .mask_id = ids_.mask,
                .vocabulary = input.tokenizer.vocabulary_size(),
                .begins_word = input.begins_word};
  }

  void append(int64_t item, uint64_t pass, TrainingBatch& batch) const final {
    // Static masks in turn, or dynamic masking.
    const int64_t copies = input_.objective().mask_copies;
    const uint64_t copy = copies > 0 ? pass % static_cast<uint64_t>(copies) : pass;
    Random random = input_.noise(item, copy);
    const auto begin = batch.input.tokens.size();
    std::vector<uint8_t> fixed;
    const int64_t example = append_text(item, random, batch, fixed);
    batch.labels.resize(batch.input.tokens.size());
    mask_tokens(masking_, std::span(batch.input.tokens).subspan(begin), fixed,
                std::span(batch.labels).subspan(begin), random);
    batch.input.end_sequence();
    input_.note_example(example, batch);
  }

 protected:
  // Appends the tokens (and types, where they are not 0) before masking; returns the example.
  virtual int64_t append_text(int64_t item, Random& random, TrainingBatch& batch,
                              std::vector<uint8_t>& fixed) const = 0;

  static void append_special(int32_t id, TrainingBatch& batch, std::vector<uint8_t>& fixed) {
    if (id < 0) return;
    batch.input.tokens.push_back(id);
    fixed.push_back(1);
  }
  static void append_ids(std::span<const int32_t> ids, TrainingBatch& batch,
                         std::vector<uint8_t>& fixed) {
    batch.input.tokens.insert(batch.input.tokens.end(), ids.begin(), ids.end());
    fixed.insert(fixed.end(), ids.size(), 0);
  }

  // The tokens of a block that remain for text.
  int64_t room(int64_t separators) const {
    const int64_t special = (ids_.classify >= 0) + separators * (ids_.separate >= 0);
    const int64_t room = input_.objective().block_tokens - special;
    if (room < separators) {
      throw Error(ErrorCode::invalid_argument,
                  "block_tokens must leave room for text besides the special tokens, got " +
                      std::to_string(input_.objective().block_tokens));
    }
    return room;
  }

  ItemsInput input_;
  RoleIds ids_;
  Masking masking_;
};

class MaskedDocuments final : public MaskedItems {
 public:
  explicit MaskedDocuments(const ItemsInput& input)
      : MaskedItems(input), pieces_(input_.store().examples(), room(1), [this](int64_t example) {
          return input_.store().first_size(example);
        }) {}

  int64_t size() const override { return pieces_.size(); }
  int64_t rows(int64_t item, uint64_t /*pass*/) const override {
    const Piece piece = piece_of(item);
    return piece.end - piece.begin + (ids_.classify >= 0) + (ids_.separate >= 0);
  }

 private:
  Piece piece_of(int64_t item) const {
    return pieces_.piece(item, input_.store().first_size(pieces_.example(item)));
  }
  int64_t append_text(int64_t item, Random&, TrainingBatch& batch,
                      std::vector<uint8_t>& fixed) const override {
    const Piece piece = piece_of(item);
    append_special(ids_.classify, batch, fixed);
    append_ids(input_.store()
                   .first(piece.example)
                   .subspan(static_cast<size_t>(piece.begin),
                            static_cast<size_t>(piece.end - piece.begin)),
               batch, fixed);
    append_special(ids_.separate, batch, fixed);
    return piece.example;
  }

  Pieces pieces_;
};

// Consecutive sentences, across documents (with a separator between), as many as fit.
class FullSentences final : public MaskedItems {
 public:
  explicit FullSentences(const ItemsInput& input) : MaskedItems(input) {
    const int64_t most = room(1);
    int64_t filled = most;  // full: the first sentence starts an item
    for (int64_t example = 0; example < input_.store().examples(); ++example) {
      const int64_t length = input_.store().first_size(example);
      const auto starts = input_.store().second(example);
      // The separator before a document that is not the first of its item.
      int64_t separator = ids_.separate >= 0 ? 1 : 0;
      for (size_t s = 0; s <= starts.size(); ++s) {
        int64_t begin = s == 0 ? 0 : starts[s - 1];
        const int64_t end = s < starts.size() ? starts[s] : length;
        while (begin < end) {  // repeats only for a sentence longer than a block
          const int64_t size = std::min(end - begin, most);
          if (items_.empty() || filled + separator + size > most) {
            close_item(filled);
            items_.push_back({.example = example, .begin = begin});
            filled = 0;
          } else {
            filled += separator;
          }
          separator = 0;
          filled += size;
          begin += size;
          items_.back().last_example = example;
          items_.back().last_end = begin;
        }
      }
    }
    close_item(filled);
  }

  int64_t size() const override { return std::ssize(items_); }
  int64_t rows(int64_t item, uint64_t /*pass*/) const override {
    return items_[static_cast<size_t>(item)].rows;
  }

 private:
  struct Run {
    int64_t example = 0, begin = 0;          // from this token on …
    int64_t last_example = 0, last_end = 0;  // … up to that one
    int64_t rows = 0;
  };
  void close_item(int64_t filled) {
    if (items_.empty()) return;
    items_.back().rows = filled + (ids_.classify >= 0) + (ids_.separate >= 0);
  }
  int64_t append_text(int64_t item, Random&, TrainingBatch& batch,
                      std::vector<uint8_t>& fixed) const override {
    const Run& run = items_[static_cast<size_t>(item)];
    append_special(ids_.classify, batch, fixed);
    for (int64_t example = run.example; example <= run.last_example; ++example) {
      if (example > run.example) append_special(ids_.separate, batch, fixed);
      const auto ids = input_.store().first(example);
      const int64_t begin = example == run.example ? run.begin : 0;
      const int64_t end = example == run.last_example ? run.last_end : std::ssize(ids);
      append_ids(ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), batch,
                 fixed);
    }
    append_special(ids_.separate, batch, fixed);
    return run.example;
  }

  std::vector<Run> items_;
};

class SentencePairItems final : public MaskedItems {
 public:
  explicit SentencePairItems(const ItemsInput& input)
      : MaskedItems(input),
        pairs_(input_.store(), {.tokens = room(2),
                                .random_share = input_.objective().next_sentence_random,
                                .short_share = input_.objective().short_sequences}) {}

  int64_t size() const override { return pairs_.size(); }
  int64_t rows(int64_t, uint64_t) const override { return input_.objective().block_tokens; }

 private:
  int64_t append_text(int64_t item, Random& random, TrainingBatch& batch,
                      std::vector<uint8_t>& fixed) const override {
    const SentencePair pair = pairs_.make(item, random);
    append_special(ids_.classify, batch, fixed);
    append_ids(pair.first, batch, fixed);
    append_special(ids_.separate, batch, fixed);
    batch.input.token_types.resize(batch.input.tokens.size());
    append_ids(pair.second, batch, fixed);
    append_special(ids_.separate, batch, fixed);
    batch.input.token_types.resize(batch.input.tokens.size(), 1);
    batch.next_sentence.push_back(pair.is_random ? 1 : 0);
    return pair.example;
  }

  SentencePairs pairs_;
};

}  // namespace

std::unique_ptr<Items> make_masked_items(const ItemsInput& input) {
  switch (input.objective().masked_input) {
    case MaskedInput::documents:
      return std::make_unique<MaskedDocuments>(input);
    case MaskedInput::full_sentences:
      return std::make_unique<FullSentences>(input);
    case MaskedInput::sentence_pairs:
      return std::make_unique<SentencePairItems>(input);
  }
  HEED_CHECK(false, "unknown masked_input");
}

}  // namespace heed
