// Splits a corpus: the start for training, the end for validation.
#pragma once

#include <string>

#include "data/options.h"

namespace heed {

struct CorpusSplit {
  CorpusOptions training, validation;  // the corpus with other files
};

// Writes the first 1 - share of the records into one file of the existing `folder`, and the rest into
// another. Records are not split, except a text that is a whole file, which is split between two
// characters. A table's header is in both parts; parallel files are split at the same line.
//
// The file names contain a fingerprint of the corpus and the share: a corpus is split only once, and
// again after a change. Throws invalid_argument when a part would be empty.
CorpusSplit split_corpus(const CorpusOptions& corpus, Objective objective,
                         const FilterOptions& filters, double share, const std::string& folder);

}  // namespace heed
