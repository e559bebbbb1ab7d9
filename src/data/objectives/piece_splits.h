// Subword regularization: undoes BPE merges at random.
//
// BPE-dropout (Provilkov et al. 2020) skips random merges while it tokenizes, so that a model sees a
// word in several segmentations. Here the text is tokenized once, and each token that was merged from
// two is split again with a given probability, recursively: similar segmentations from the ids alone,
// at the cost of a few random numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"
#include "heed/tokenizer.h"

namespace heed {

class PieceSplits {
 public:
  // Throws invalid_argument when no token of the vocabulary consists of two others.
  explicit PieceSplits(const Tokenizer& tokenizer);

  // Appends `ids` to `to`, each split with probability `rate`.
  void append(std::span<const int32_t> ids, double rate, Random& random,
              std::vector<int32_t>& to) const;
  // How many ids append() adds with the same random numbers.
  int64_t count(std::span<const int32_t> ids, double rate, Random& random) const;
  // Appends `ids` split as far as possible: the maximum of append().
  void append_most(std::span<const int32_t> ids, std::vector<int32_t>& to) const;
  int64_t most(std::span<const int32_t> ids) const;  // ids that append_most() adds

 private:
  struct Parts {
    int32_t left = -1, right = -1;  // -1: cannot be split
  };
  static Parts find_parts(const Tokenizer& tokenizer, int32_t id, bool marks_inside);
  template <class Splits, class Take>
  void walk(int32_t id, const Splits& splits, const Take& take) const;

  std::vector<Parts> parts_;   // [vocabulary]
  std::vector<int64_t> most_;  // [vocabulary]; maximum tokens after splitting
};

}  // namespace heed
