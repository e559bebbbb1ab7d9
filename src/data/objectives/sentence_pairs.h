// BERT's text pairs for next sentence prediction (Devlin et al. 2019, appendix A.2).
//
// Documents are split into runs of sentences that fill a block. A run is split at a random sentence:
// the first part is the first text; the second text is the rest or, with equal probability, sentences
// of another document. One in ten pairs is shorter. The published code writes its data once and
// reuses the rest of a run after a random second text; here a run is one item, whose rest is used in
// another epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "data/batches/token_store.h"

namespace heed {

struct SentencePairOptions {
  int64_t tokens = 509;       // maximum of both texts together
  double random_share = 0.5;  // probability of a random second text
  double short_share = 0.1;   // probability of a shorter pair
};

struct SentencePair {
  std::vector<int32_t> first, second;
  bool is_random = false;  // the second text does not follow the first
  int64_t example = 0;     // of the first text
};

class SentencePairs {
 public:
  // Keeps a reference to the store: documents and the starts of their sentences. Throws
  // invalid_argument for fewer than two documents, which allow no random second text.
  SentencePairs(const TokenStore& store, const SentencePairOptions& options);

  int64_t size() const { return std::ssize(runs_); }
  SentencePair make(int64_t run, Random& random) const;

 private:
  struct Run {
    uint32_t example, sentence, sentences;
  };

  const TokenStore& store_;
  SentencePairOptions options_;
  std::vector<Run> runs_;
};

}  // namespace heed
