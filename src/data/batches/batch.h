// A training batch: packed sequences and their labels.
//
// Owning vectors; ops/batch.h views them as spans. No padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ignore_label.h"

namespace heed {

// Packed sequences, in the layout of ops/batch.h's Batch.
struct Rows {
  std::vector<int32_t> tokens;       // [rows] ids
  std::vector<int32_t> positions;    // [rows] from 0 in each sequence
  std::vector<int32_t> token_types;  // [rows]
  std::vector<int32_t> offsets{0};   // [sequences + 1]

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  int64_t sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  bool empty() const { return tokens.empty(); }

  // Ends the current sequence after its tokens were appended: adds its positions, and token types 0
  // where none were appended.
  void end_sequence();

  bool operator==(const Rows&) const = default;
};

struct TrainingBatch {
  Rows input;   // the encoder's input, or the input of a decoder-only or encoder-only model
  Rows target;  // the decoder's input of an encoder-decoder model; otherwise no sequences

  // The label, an id or a tag, of each row of `target` (of `input` without a target); kIgnoreLabel for
  // rows without one. Empty when the task has one label per sequence.
  std::vector<int32_t> labels;
  std::vector<int32_t> sequence_labels;  // [sequences] classes; or empty
  std::vector<float> scores;             // [sequences] regression targets; or empty
  std::vector<int32_t> next_sentence;    // [sequences] 0: the second text follows, 1: it is random
  // [sequences] the example, by its index among those kept, and its corpus, by its index in
  // StreamOptions::corpora. Pieces of one document share it.
  std::vector<int64_t> examples;
  std::vector<int32_t> corpora;

  int64_t sequences() const { return input.sequences(); }
  int64_t rows() const { return input.rows() + target.rows(); }  // counted against batch_tokens
  int64_t source_tokens() const { return input.rows(); }
  int64_t target_tokens() const { return target.rows(); }

  bool operator==(const TrainingBatch&) const = default;
};

}  // namespace heed
