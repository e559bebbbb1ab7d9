// A tokenized corpus, from the cache if it is up to date, otherwise built and cached.
//
// The cache is one file per corpus (token_store.h), named by its settings (file names, tokenizer,
// options) and with a fingerprint of its content (the files' sizes, times and samples of their bytes).
// A mismatch rebuilds it. The folder may be deleted at any time.
#pragma once

#include <string>
#include <vector>

#include "data/batches/token_store.h"
#include "data/options.h"
#include "data/records/corpus_report.h"
#include "heed/tokenizer.h"

namespace heed {

struct Corpus {
  TokenStore store;
  CorpusReport report;
  std::vector<std::string> labels;  // classes by number in the store, in order of appearance
};

// Corpus `which` of `options`. The files are tokenized by options.threads threads in a few megabytes of
// memory. With several processes, one builds the cache and the others wait.
Corpus open_corpus(const StreamOptions& options, size_t which, const Tokenizer& tokenizer);

// A hash of the tokenizer's vocabulary and special tokens.
uint64_t tokenizer_fingerprint(const Tokenizer& tokenizer);

}  // namespace heed
