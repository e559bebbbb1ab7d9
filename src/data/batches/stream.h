// Batches without end, from any place: what training and validation iterate over.
//
//   BatchStream stream({.corpora = {{.files = {"train.en", "train.de"}}}, .batch_tokens = 8192},
//                      tokenizer);
//   Cursor cursor;                                    // or the one a checkpoint kept
//   for (;;) step(stream.next(cursor));
//
//   BatchStream valid({.corpora = …, .shuffle = false}, tokenizer);
//   for (Cursor c; c.epoch == 0;) evaluate(valid.next(c));   // each example once
//
// What a batch holds depends on the options, the corpus and the cursor alone: not on threads, nor
// on which batches were asked for before. So to resume is to keep a cursor.
//
// An epoch is shuffled as a whole (by a permutation that is computed, never stored), then dealt
// into pools; examples of a pool are sorted by length and cut into batches, whose order is
// shuffled. Memory is one pool's plan; the tokens stay in a mapped file.
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

// A place in the stream: the next batch to give.
struct Cursor {
  uint64_t epoch = 0;  // how often everything has been seen
  uint64_t pool = 0;   // of the epoch
  uint64_t batch = 0;  // of the pool

  bool operator==(const Cursor&) const = default;
};

// Not safe for several threads at once.
class BatchStream {
 public:
  // Tokenises what the cache does not have yet. Throws not_found and invalid_argument for files,
  // columns and options that cannot be, all with the place; invalid_argument, with the report, when
  // no example is left.
  BatchStream(const StreamOptions& options, TokenizerPtr tokenizer);
  BatchStream(BatchStream&&) noexcept;
  BatchStream& operator=(BatchStream&&) noexcept;
  ~BatchStream();

  // The batch at `cursor`, which moves to the next; over the end of an epoch to the next epoch.
  // With several ranks it moves past the batches of all, so that all ranks keep the same cursor. A
  // cursor that this stream could not have given throws invalid_argument.
  TrainingBatch next(Cursor& cursor);

  // The longest examples, as many as a batch takes: what memory has to suffice for. Where lengths
  // differ from epoch to epoch (subword_dropout), no batch of any epoch has more rows, in all or in
  // its longest sequence.
  TrainingBatch largest_batch();

  int64_t examples() const;       // an epoch's sequences (pieces of documents, blocks)
  int64_t corpus_tokens() const;  // tokens in all corpora, each counted once
  // Classes by number: classification and tagging.
  const std::vector<std::string>& labels() const;
  // What was read and what was left out, one a corpus.
  const std::vector<CorpusReport>& reports() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heed
