// A corpus cut in two: most of it to train with, its end to validate with.
#pragma once

#include <string>

#include "data/options.h"

namespace heed {

struct CorpusSplit {
  CorpusOptions training, validation;  // as the corpus, but for the files
};

// Writes the first 1 - share of the records into one file of `folder`, which exists, and the rest
// into another. No record is cut but a text that is a whole file, which is cut between two
// characters. A table's header goes to both; two parallel files are cut at the same line.
//
// The names tell what the parts were made of and how: the same corpus is cut only once, and a file
// or a share that has changed makes other parts. Throws invalid_argument when a part would be
// empty.
CorpusSplit split_corpus(const CorpusOptions& corpus, Objective objective,
                         const FilterOptions& filters, double share, const std::string& folder);

}  // namespace heed
