// A corpus, tokenised: from the cache when that is of today, else made and put there.
//
// The cache is one file a corpus (token_store.h), named by what it is made with (files' names,
// tokenizer, options) and stamped with what it is made from (the files' sizes, times and samples of
// their bytes). Whatever does not match is made anew. The folder may be deleted at any time.
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
  std::vector<std::string> labels;  // classes by the numbers the store has, in order of appearance
};

// Of the corpora of `options`, number `which`. The files are tokenised by options.threads threads;
// memory stays at a few megabytes. Several processes may ask at once: one makes the cache, the
// others wait for it.
Corpus open_corpus(const StreamOptions& options, size_t which, const Tokenizer& tokenizer);

// A number that tells tokenizers apart: their pieces and special tokens.
uint64_t tokenizer_fingerprint(const Tokenizer& tokenizer);

}  // namespace heed
