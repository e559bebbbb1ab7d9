// What one step of training reads: sequences packed end to end, and what should come out.
//
// Plain vectors that own their numbers; ops/batch.h borrows them as spans. Nothing is padded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ignore_label.h"

namespace heed {

// Sequences end to end, in the form of ops/batch.h's Batch.
struct Rows {
  std::vector<int32_t> tokens;       // [rows] ids
  std::vector<int32_t> positions;    // [rows] from 0 in each sequence
  std::vector<int32_t> token_types;  // [rows]
  std::vector<int32_t> offsets{0};   // [sequences + 1]

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  int64_t sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  bool empty() const { return tokens.empty(); }

  // Ends the sequence that began at the last offset, after its tokens were appended: fills in its
  // positions, and token types of 0 where none were appended.
  void end_sequence();

  bool operator==(const Rows&) const = default;
};

struct TrainingBatch {
  Rows input;   // the encoder's input, or all that a decoder-only or encoder-only model reads
  Rows target;  // the decoder's input in an encoder-decoder model; else no sequences

  // The id, or the tag, that each row of `target` should predict (of `input` when there is no
  // target); kIgnoreLabel where nothing is asked. Empty when the task has one answer a sequence.
  std::vector<int32_t> labels;
  std::vector<int32_t> sequence_labels;  // [sequences] classes; or empty
  std::vector<float> scores;             // [sequences] what a regression should give; or empty
  std::vector<int32_t> next_sentence;    // [sequences] 0: the second text follows, 1: it is random
  // [sequences] which example of which corpus (numbered as StreamOptions::corpora) each one is:
  // its number among those that were kept, from 0. Pieces of one document share it.
  std::vector<int64_t> examples;
  std::vector<int32_t> corpora;

  int64_t sequences() const { return input.sequences(); }
  int64_t rows() const { return input.rows() + target.rows(); }  // what the token budget counts
  int64_t source_tokens() const { return input.rows(); }
  int64_t target_tokens() const { return target.rows(); }

  bool operator==(const TrainingBatch&) const = default;
};

}  // namespace heed
