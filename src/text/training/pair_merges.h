// Learns BPE merges (Sennrich et al., 2016): repeatedly merges the most frequent pair of adjacent
// symbols.
//
// Pair counts are updated only in words that a merge changes; a heap with lazily updated entries
// finds the largest. Ties go to the pair with the lower ids, so the result depends only on the words
// and equals that of Hugging Face's trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace heed {

struct TrainingWord {
  std::vector<int32_t> symbols;
  int64_t count = 0;
};

struct PairMerge {
  int32_t left = 0, right = 0;
  int32_t result = 0;  // a new symbol, or the existing one of this name
};

struct PairMergesOptions {
  int64_t symbols = 0;    // stop at this vocabulary size
  int64_t min_count = 2;  // rarer pairs are not merged
  // Removed from the right half of a pair: WordPiece's "##".
  std::string continuing_prefix{};
  std::function<void(double done)> progress{};
};

// Appends to `names`, the names of the symbols, and returns the merges in order. Stops early when no
// pair is left: compare names.size().
std::vector<PairMerge> learn_merges(std::vector<TrainingWord> words,
                                    std::vector<std::string>& names,
                                    const PairMergesOptions& options);

}  // namespace heed
