// Sub-word regularisation: a text's pieces, some of them taken apart again.
//
// BPE-dropout (Provilkov et al. 2020) leaves out merges at random while it segments, so that a
// model sees a word in many forms and learns what its parts mean. Here the text is segmented once,
// and each piece that was merged of two becomes these two at a given rate, and so on with the
// parts: the same words in the same kind of pieces, from the ids alone, at the cost of a few random
// numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"
#include "heed/tokenizer.h"

namespace heed {

class PieceSplits {
 public:
  // Throws invalid_argument when no piece of the vocabulary consists of two others.
  explicit PieceSplits(const Tokenizer& tokenizer);

  // Appends `ids` to `to`, each taken apart at `rate` (0 … 1).
  void append(std::span<const int32_t> ids, double rate, Random& random,
              std::vector<int32_t>& to) const;
  // How many ids append() adds with the same random numbers.
  int64_t count(std::span<const int32_t> ids, double rate, Random& random) const;
  // Appends `ids`, all that can be taken apart so, and these again: the most that append() adds.
  void append_most(std::span<const int32_t> ids, std::vector<int32_t>& to) const;
  int64_t most(std::span<const int32_t> ids) const;  // how many that are

 private:
  struct Parts {
    int32_t left = -1, right = -1;  // -1: cannot be taken apart
  };
  static Parts find_parts(const Tokenizer& tokenizer, int32_t id, bool marks_inside);
  template <class Splits, class Take>
  void walk(int32_t id, const Splits& splits, const Take& take) const;

  std::vector<Parts> parts_;   // [vocabulary]
  std::vector<int64_t> most_;  // [vocabulary]; how many pieces one can become
};

}  // namespace heed
