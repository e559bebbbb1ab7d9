// What an objective makes of a corpus: numbered items, each one sequence of a batch.
//
// An item is an example, a piece of a document, a block of a stream … What it holds is a function
// of its number and the pass (how often the corpus has been gone through), so any batch can be made
// at any time, alone.
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

// The streams of random numbers that data takes, far from the numbers of a model's dropouts.
inline constexpr uint32_t kShuffleSite = 0xDA7A0000, kNoiseSite = 0xDA7B0000,
                          kPoolSite = 0xDA7C0000, kBatchSite = 0xDA7D0000;

class Items {
 public:
  virtual ~Items() = default;

  virtual int64_t size() const = 0;
  // The rows of an item in that pass, both sides; or the most it can have.
  virtual int64_t rows(int64_t item, uint64_t pass) const = 0;
  virtual void append(int64_t item, uint64_t pass, TrainingBatch& batch) const = 0;

  // Whether an item's rows are others in another pass.
  virtual bool varies() const { return false; }
  // The most rows that an item has in any pass.
  virtual int64_t most_rows(int64_t item) const { return rows(item, 0); }
  // Appends something of the item's kind with so many rows; where items vary, at most as many as
  // `rows` says (2 or more).
  virtual void append_most(int64_t item, int64_t /*rows*/, TrainingBatch& batch) const {
    append(item, 0, batch);
  }
};

// Borrowed by the items for their lifetime.
struct ItemsInput {
  const StreamOptions& options;
  const Corpus& corpus;
  uint32_t corpus_number = 0;
  const Tokenizer& tokenizer;
  std::span<const uint8_t> begins_word;  // [vocabulary]; only filled when whole_words asks for it
  std::span<const int32_t> label_map;    // from the corpus' numbers to the stream's, or -1

  const TokenStore& store() const { return corpus.store; }
  const ObjectiveOptions& objective() const { return options.objective; }
  // The random numbers of an item.
  Random noise(int64_t item, uint64_t pass) const;
  // Notes which example a sequence is.
  void note_example(int64_t example, TrainingBatch& batch) const;
};

// Throws invalid_argument when the corpus is too small for the objective or the tokenizer lacks
// what it needs. `report` gets what is left out here: examples of unknown labels.
std::unique_ptr<Items> make_items(const ItemsInput& input, CorpusReport& report);

// One for each kind.
std::unique_ptr<Items> make_pair_items(const ItemsInput& input);  // translation, parsing
std::unique_ptr<Items> make_labelled_items(const ItemsInput& input, CorpusReport& report);
std::unique_ptr<Items> make_causal_items(const ItemsInput& input);
std::unique_ptr<Items> make_masked_items(const ItemsInput& input);
std::unique_ptr<Items> make_denoising_items(const ItemsInput& input);  // T5's and BART's

// A part of a document: ids [begin, end) of an example.
struct Piece {
  int64_t example = 0, begin = 0, end = 0;
};

// Documents divided into pieces of at most a given number of tokens; 8 bytes a piece.
class Pieces {
 public:
  // length(example) is what there is to divide; none for documents of length 0.
  template <class Length>
  Pieces(int64_t examples, int64_t piece_tokens, const Length& length)
      : piece_tokens_(piece_tokens) {
    for (int64_t example = 0; example < examples; ++example) {
      const int64_t tokens = length(example);
      for (int64_t begin = 0; begin < tokens; begin += piece_tokens) add(example, begin);
    }
  }
  int64_t size() const { return std::ssize(starts_); }
  // `length`: of its document, as was given.
  int64_t example(int64_t piece) const { return starts_[static_cast<size_t>(piece)].example; }
  Piece piece(int64_t piece, int64_t length) const;

 private:
  void add(int64_t example, int64_t begin);

  struct Start {
    uint32_t example, number;  // the number-th of its document
  };
  std::vector<Start> starts_;
  int64_t piece_tokens_;
};

// Appends a decoder's side: it reads start, labels[0], … and should say labels.
void append_target(int32_t start, std::span<const int32_t> labels, TrainingBatch& batch);

}  // namespace heed
