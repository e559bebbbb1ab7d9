// Denoising for encoder-decoder models: T5's span corruption, BART's infilling and permutation.
#include <algorithm>
#include <string>

#include "data/objectives/infilling.h"
#include "data/objectives/items.h"
#include "data/objectives/span_corruption.h"
#include "heed/error.h"

namespace heed {

namespace {

std::span<const int32_t> ids_of(const TokenStore& store, const Piece& piece) {
  return store.first(piece.example)
      .subspan(static_cast<size_t>(piece.begin), static_cast<size_t>(piece.end - piece.begin));
}

class SpanItems final : public Items {
 public:
  explicit SpanItems(const ItemsInput& input)
      : input_(input),
        ids_(resolve_role_ids(input.objective(), input.tokenizer)),
        corruption_{input.objective().mask_rate, input.objective().mean_span},
        sentinels_(find_sentinels(input.tokenizer)),
        pieces_(input.store().examples(), text_tokens(),
                [this](int64_t example) { return input_.store().first_size(example); }) {}

  int64_t size() const override { return pieces_.size(); }
  int64_t rows(int64_t item, uint64_t /*pass*/) const override {
    const Piece piece = piece_of(item);
    const int64_t length = piece.end - piece.begin;
    return corruption_.input_rows(length) + corruption_.target_rows(length) + (length == 1);
  }
  void append(int64_t item, uint64_t pass, TrainingBatch& batch) const override {
    const Piece piece = piece_of(item);
    Random random = input_.noise(item, pass);
    std::vector<int32_t> target;
    const auto mask = span_mask(corruption_, piece.end - piece.begin, random);
    corrupt_spans(ids_of(input_.store(), piece), mask, sentinels_, batch.input.tokens, target);
    batch.input.tokens.push_back(ids_.end);
    batch.input.end_sequence();
    target.push_back(ids_.end);
    append_target(ids_.start, target, batch);
    input_.note_example(piece.example, batch);
  }

 private:
  int64_t text_tokens() const {
    const int64_t block = input_.objective().block_tokens;
    const int64_t tokens = corruption_.longest_text(block);
    const auto needed = static_cast<size_t>(corruption_.counts(tokens).spans);
    if (tokens < 2) {
      throw Error(ErrorCode::invalid_argument,
                  "block_tokens must leave room for a text, got " + std::to_string(block));
    }
    if (sentinels_.size() < needed) {
      throw Error(ErrorCode::invalid_argument,
                  "the tokenizer must have " + std::to_string(needed) +
                      " sentinels (<extra_id_0> …) for block_tokens = " + std::to_string(block) +
                      ", got " + std::to_string(sentinels_.size()),
                  "use a smaller block_tokens, or a tokenizer with more sentinels");
    }
    return tokens;
  }
  Piece piece_of(int64_t item) const {
    return pieces_.piece(item, input_.store().first_size(pieces_.example(item)));
  }

  ItemsInput input_;
  RoleIds ids_;
  SpanCorruption corruption_;
  std::vector<int32_t> sentinels_;
  Pieces pieces_;
};

class InfillingItems final : public Items {
 public:
  explicit InfillingItems(const ItemsInput& input)
      : input_(input),
        ids_(resolve_role_ids(input.objective(), input.tokenizer)),
        infilling_{.rate = input.objective().mask_rate,
                   .mean_span = input.objective().mean_span,
                   .mask_id = ids_.mask,
                   .begins_word = input.begins_word},
        pieces_(input.store().examples(), text_tokens(),
                [this](int64_t example) { return input_.store().first_size(example); }) {}

  int64_t size() const override { return pieces_.size(); }
  int64_t rows(int64_t item, uint64_t /*pass*/) const override {
    const Piece piece = piece_of(item);
    return 2 * (piece.end - piece.begin + special_tokens());
  }
  void append(int64_t item, uint64_t pass, TrainingBatch& batch) const override {
    const Piece piece = piece_of(item);
    Random random = input_.noise(item, pass);
    const auto text = ids_of(input_.store(), piece);
    std::vector<int32_t> starts;
    for (const int32_t start : input_.store().second(piece.example)) {
      if (start > piece.begin && start < piece.end) {
        starts.push_back(static_cast<int32_t>(start - piece.begin));
      }
    }
    const auto permuted =
        permute_sentences(text, starts, input_.objective().permute_sentences, random);
    batch.input.tokens =
        closed(std::move(batch.input.tokens), infill(infilling_, permuted, random));
    batch.input.end_sequence();
    append_target(ids_.start, closed({}, text), batch);
    input_.note_example(piece.example, batch);
  }

 private:
  int64_t special_tokens() const { return 1 + (ids_.begin >= 0); }
  int64_t text_tokens() const {
    const int64_t tokens = input_.objective().block_tokens - special_tokens();
    if (tokens > 0) return tokens;
    throw Error(ErrorCode::invalid_argument, "block_tokens must leave room for a text, got " +
                                                 std::to_string(input_.objective().block_tokens));
  }
  // Appends <s> text </s>.
  std::vector<int32_t> closed(std::vector<int32_t> to, std::span<const int32_t> text) const {
    if (ids_.begin >= 0) to.push_back(ids_.begin);
    to.insert(to.end(), text.begin(), text.end());
    to.push_back(ids_.end);
    return to;
  }
  Piece piece_of(int64_t item) const {
    return pieces_.piece(item, input_.store().first_size(pieces_.example(item)));
  }

  ItemsInput input_;
  RoleIds ids_;
  Infilling infilling_;
  Pieces pieces_;
};

}  // namespace

std::unique_ptr<Items> make_denoising_items(const ItemsInput& input) {
  if (input.objective().kind == Objective::span_corruption) {
    return std::make_unique<SpanItems>(input);
  }
  return std::make_unique<InfillingItems>(input);
}

}  // namespace heed
