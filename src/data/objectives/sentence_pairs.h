// BERT's pairs of texts for its next-sentence question (Devlin et al. 2019, appendix A.2).
//
// Documents are divided into runs of sentences that fill a block. A run is cut at a random
// sentence: what is before is the first text; the second is what follows, or, as often, sentences
// of another document. One in ten is made shorter. Unlike the published code, which writes its data
// once and goes on after the first text where the second was random, a run is one item: what a
// random second text pushes aside in one epoch is read in another.
#pragma once

#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "data/batches/token_store.h"

namespace heed {

struct SentencePairOptions {
  int64_t tokens = 509;       // most of both texts together
  double random_share = 0.5;  // how often the second text is a random one
  double short_share = 0.1;   // how often the pair is shorter than it could be
};

struct SentencePair {
  std::vector<int32_t> first, second;
  bool is_random = false;  // the second text does not follow the first
  int64_t example = 0;     // whose text is first
};

class SentencePairs {
 public:
  // Borrows the store: documents and where their sentences begin. Throws invalid_argument when
  // there are fewer than two documents: then nothing is random.
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
