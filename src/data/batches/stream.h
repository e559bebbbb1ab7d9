// An endless, resumable stream of batches for training and validation.
//
//   BatchStream stream({.corpora = {{.files = {"train.en", "train.de"}}}, .batch_tokens = 8192},
//                      tokenizer);
//   Cursor cursor;                                    // or the one in a checkpoint
//   for (;;) step(stream.next(cursor));
//
//   BatchStream valid({.corpora = …, .shuffle = false}, tokenizer);
//   for (Cursor c; c.epoch == 0;) evaluate(valid.next(c));   // each example once
//
// A batch depends only on the options, the corpus and the cursor: not on threads or on earlier
// batches. A run therefore resumes from a cursor alone.
//
// An epoch is shuffled as a whole (by a permutation that is computed, not stored), then divided into
// pools; the examples of a pool are bucketed by length into batches, whose order is shuffled. Memory
// is one pool's plan; the tokens stay in a memory-mapped file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batches/batch.h"
#include "data/options.h"
#include "data/records/corpus_report.h"
#include "heed/tokenizer.h"

namespace heed {

// A position in the stream: the next batch.
struct Cursor {
  uint64_t epoch = 0;  // complete epochs
  uint64_t pool = 0;   // of the epoch
  uint64_t batch = 0;  // of the pool

  bool operator==(const Cursor&) const = default;
};

// Not thread-safe.
class BatchStream {
 public:
  // Tokenizes corpora that are not cached. Throws not_found and invalid_argument for bad files,
  // columns and options; invalid_argument, with the report, when no example is left.
  BatchStream(const StreamOptions& options, TokenizerPtr tokenizer);
  BatchStream(BatchStream&&) noexcept;
  BatchStream& operator=(BatchStream&&) noexcept;
  ~BatchStream();

  // The batch at `cursor`, which advances to the next, across epochs. With several ranks it advances
  // past the batches of all ranks, so that all have the same cursor. Throws invalid_argument for a
  // cursor that is not of this stream.
  TrainingBatch next(Cursor& cursor);

  // The longest examples that fit into a batch, for planning memory. Where lengths vary by epoch
  // (subword_dropout), no batch of any epoch has more rows, in total or in its longest sequence.
  TrainingBatch largest_batch();

  int64_t examples() const;       // sequences per epoch (pieces of documents, blocks)
  int64_t corpus_tokens() const;  // tokens of all corpora
  // Classes by number: classification and tagging.
  const std::vector<std::string>& labels() const;
  // Read and skipped examples, one report per corpus.
  const std::vector<CorpusReport>& reports() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heed
