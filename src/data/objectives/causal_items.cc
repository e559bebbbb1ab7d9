// Causal language modeling: separate documents, or blocks of the concatenated corpus.
#include <algorithm>
#include <string>

#include "data/objectives/items.h"
#include "heed/error.h"

namespace heed {

namespace {

// Appends a sequence with input ids[0] … and labels ids[1] ….
void append_sequence(std::span<const int32_t> ids, TrainingBatch& batch) {
  batch.input.tokens.insert(batch.input.tokens.end(), ids.begin(), ids.end() - 1);
  batch.input.end_sequence();
  batch.labels.insert(batch.labels.end(), ids.begin() + 1, ids.end());
}

// Each document is a separate sequence, so there is no attention across documents. A long one is
// split without loss: the last label of a piece is the first input of the next.
class DocumentItems final : public Items {
 public:
  explicit DocumentItems(const ItemsInput& input)
      : input_(input), first_(first_id(input)), pieces_(divided(input, first_)) {}

  int64_t size() const override { return pieces_.size(); }
  int64_t rows(int64_t item, uint64_t /*pass*/) const override {
    const Piece piece = piece_of(item);
    return piece.end - piece.begin;
  }
  void append(int64_t item, uint64_t, TrainingBatch& batch) const override {
    const Piece piece = piece_of(item);
    const auto document = input_.store().first(piece.example);
    std::vector<int32_t> ids;
    // The input of row r is id r; with a prepended first id, id r - 1.
    int64_t begin = piece.begin, end = piece.end + 1;
    if (first_ >= 0) {
      if (begin == 0) ids.push_back(first_);
      begin = std::max<int64_t>(0, begin - 1);
      --end;
    }
    ids.insert(ids.end(), document.begin() + begin, document.begin() + end);
    append_sequence(ids, batch);
    input_.note_example(piece.example, batch);
  }

 private:
  // A token that both begins and ends a document is stored at the end only (example.h): prepend it.
  static int32_t first_id(const ItemsInput& input) {
    const RoleIds ids = resolve_role_ids(input.objective(), input.tokenizer);
    return ids.begin == ids.end ? ids.begin : -1;
  }
  static int64_t rows_of(const ItemsInput& input, int32_t first, int64_t example) {
    return input.store().first_size(example) - (first >= 0 ? 0 : 1);
  }
  static Pieces divided(const ItemsInput& input, int32_t first) {
    return Pieces(input.store().examples(), input.objective().block_tokens,
                  [&](int64_t example) { return rows_of(input, first, example); });
  }
  Piece piece_of(int64_t item) const {
    return pieces_.piece(item, rows_of(input_, first_, pieces_.example(item)));
  }

  ItemsInput input_;
  int32_t first_;  // or -1
  Pieces pieces_;
};

// Blocks of equal size. Training samples them at random offsets, as nanoGPT does; an "epoch" is as
// many blocks as fit into the stream. In order (shuffle = false) they cover the stream once.
class BlockItems final : public Items {
 public:
  explicit BlockItems(const ItemsInput& input)
      : input_(input), block_(input.objective().block_tokens) {
    const int64_t tokens = input.store().first_tokens();
    const bool random = input.options.shuffle;
    if (tokens < (random ? block_ + 1 : 2)) {
      throw Error(ErrorCode::invalid_argument,
                  input.corpus.report.name + ": " + std::to_string(tokens) +
                      " tokens are too few for a block of " + std::to_string(block_) +
                      " and its last label",
                  "use a smaller block_tokens, or more text");
    }
    labels_ = tokens - 1;
    size_ = random ? labels_ / block_ : (labels_ + block_ - 1) / block_;
    // Rounded to whole batches of equal size.
    const int64_t sentences = input.options.batch_sentences;
    if (random && sentences > 0 && size_ > sentences) size_ -= size_ % sentences;
  }

  int64_t size() const override { return size_; }
  int64_t rows(int64_t item, uint64_t /*pass*/) const override {
    return input_.options.shuffle ? block_ : std::min(block_, labels_ - item * block_);
  }
  void append(int64_t item, uint64_t pass, TrainingBatch& batch) const override {
    int64_t begin = item * block_;
    if (input_.options.shuffle) {
      Random random = input_.noise(item, pass);
      begin = static_cast<int64_t>(random.below(static_cast<uint64_t>(labels_ - block_ + 1)));
    }
    std::vector<int32_t> ids(static_cast<size_t>(rows(item, 0) + 1));
    input_.store().copy_stream(begin, ids);
    append_sequence(ids, batch);
    input_.note_example(item, batch);
  }

 private:
  ItemsInput input_;
  int64_t block_, labels_ = 0, size_ = 0;
};

}  // namespace

std::unique_ptr<Items> make_causal_items(const ItemsInput& input) {
  if (input.objective().random_blocks) return std::make_unique<BlockItems>(input);
  return std::make_unique<DocumentItems>(input);
}

}  // namespace heed
