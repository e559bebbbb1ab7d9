// The training text of a tokenizer: the texts of the corpora without labels and other columns.
#pragma once

#include <string>
#include <vector>

#include "data/options.h"
#include "data/records/corpus_report.h"

namespace heed {

struct TokenizerText {
  std::vector<std::string> files;
  std::vector<CorpusReport> skipped;  // corpora of which records were skipped
};

// Plain text files for TokenizerTraining::files: those of the corpora if they are plain (source and
// target each in a file), else `path`, which is written with one text per line. Labels, tags and
// unused columns are left out; source prefixes and linearized trees are included. Throws
// invalid_argument with the reason if a corpus has no text.
TokenizerText tokenizer_text(const std::vector<CorpusOptions>& corpora, Objective objective,
                             const std::string& path);

}  // namespace heed
