// The items that an objective makes from a corpus; each is one sequence of a batch.
//
// An item is an example, a piece of a document, a block of a stream … Its content is a function of
// its index and the pass over the corpus, so any batch can be built independently.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/philox.h"
#include "data/batches/batch.h"
#include "data/options.h"
#include "data/records/corpus.h"
#include "data/records/role_ids.h"
#include "heed/tokenizer.h"

namespace heed {

// Random streams of the data, disjoint from the sites of a model's dropouts.
inline constexpr uint32_t kShuffleSite = 0xDA7A0000, kNoiseSite = 0xDA7B0000,
                          kPoolSite = 0xDA7C0000, kBatchSite = 0xDA7D0000;

class Items {
 public:
  virtual ~Items() = default;

  virtual int64_t size() const = 0;
  // The rows of an item in that pass, both sides; or an upper bound.
  virtual int64_t rows(int64_t item, uint64_t pass) const = 0;
  virtual void append(int64_t item, uint64_t pass, TrainingBatch& batch) const = 0;

  // Whether an item's rows depend on the pass.
  virtual bool varies() const { return false; }
  // The maximum rows of an item over all passes.
  virtual int64_t most_rows(int64_t item) const { return rows(item, 0); }
  // Appends the item with its maximum rows; where items vary, with at most `rows` (2 or more).
  virtual void append_most(int64_t item, int64_t /*rows*/, TrainingBatch& batch) const {
    append(item, 0, batch);
  }
};

// Referenced by the items for their lifetime.
struct ItemsInput {
  const StreamOptions& options;
  const Corpus& corpus;
  uint32_t corpus_number = 0;
  const Tokenizer& tokenizer;
  std::span<const uint8_t> begins_word;  // [vocabulary]; only with whole_words
  std::span<const int32_t> label_map;    // from the corpus' class numbers to the stream's, or -1

  const TokenStore& store() const { return corpus.store; }
  const ObjectiveOptions& objective() const { return options.objective; }
  // The random numbers of an item.
  Random noise(int64_t item, uint64_t pass) const;
  // Records the example of a sequence.
  void note_example(int64_t example, TrainingBatch& batch) const;
};

// Throws invalid_argument when the corpus is too small for the objective or the tokenizer lacks
// a required token. `report` counts examples skipped here: unknown labels.
std::unique_ptr<Items> make_items(const ItemsInput& input, CorpusReport& report);

// One per objective.
std::unique_ptr<Items> make_pair_items(const ItemsInput& input);  // translation, parsing
std::unique_ptr<Items> make_labelled_items(const ItemsInput& input, CorpusReport& report);
std::unique_ptr<Items> make_causal_items(const ItemsInput& input);
std::unique_ptr<Items> make_masked_items(const ItemsInput& input);
std::unique_ptr<Items> make_denoising_items(const ItemsInput& input);  // T5's and BART's

// A part of a document: ids [begin, end) of an example.
struct Piece {
  int64_t example = 0, begin = 0, end = 0;
};

// Documents split into pieces of at most a given number of tokens; 8 bytes per piece.
class Pieces {
 public:
  // length(example): tokens to split; a document of length 0 has no pieces.
  template <class Length>
  Pieces(int64_t examples, int64_t piece_tokens, const Length& length)
      : piece_tokens_(piece_tokens) {
    for (int64_t example = 0; example < examples; ++example) {
      const int64_t tokens = length(example);
      for (int64_t begin = 0; begin < tokens; begin += piece_tokens) add(example, begin);
    }
  }
  int64_t size() const { return std::ssize(starts_); }
  // `length`: of its document.
  int64_t example(int64_t piece) const { return starts_[static_cast<size_t>(piece)].example; }
  Piece piece(int64_t piece, int64_t length) const;

 private:
  void add(int64_t example, int64_t begin);

  struct Start {
    uint32_t example, number;  // the index within its document
  };
  std::vector<Start> starts_;
  int64_t piece_tokens_;
};

// Appends the decoder side: input start, labels[0], …; labels `labels` (teacher forcing).
void append_target(int32_t start, std::span<const int32_t> labels, TrainingBatch& batch);

}  // namespace heed
