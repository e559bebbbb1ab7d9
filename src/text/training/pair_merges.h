// Byte pair encoding's learning (Sennrich et al., 2016): the most frequent pair of neighbouring
// symbols becomes a symbol of its own, again and again.
//
// Counts are kept for all pairs and changed only where a merge touches a word; a heap, whose
// entries may be out of date, finds the largest. Ties go to the pair of lower numbers, so the
// result depends on nothing but the words: it is that of Hugging Face's trainer.
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
  int32_t result = 0;  // a new symbol, or one that has this name already
};

struct PairMergesOptions {
  int64_t symbols = 0;    // stop when there are so many
  int64_t min_count = 2;  // a pair seen less often is a coincidence
  // Taken off the front of a pair's right half: WordPiece's "##".
  std::string continuing_prefix{};
  std::function<void(double done)> progress{};
};

// Grows `names`, which holds those of the words' symbols, and returns the merges in order. Ends
// early when no pair is left; names.size() tells.
std::vector<PairMerge> learn_merges(std::vector<TrainingWord> words,
                                    std::vector<std::string>& names,
                                    const PairMergesOptions& options);

}  // namespace heed
