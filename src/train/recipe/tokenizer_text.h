// What a tokenizer learns from: the texts of the corpora, and nothing else that is in their files.
#pragma once

#include <string>
#include <vector>

#include "data/options.h"

namespace heed {

// Files of plain text, for TokenizerTraining::files: the corpora's own where they are plain (source
// and target each in a file), else `path`, which is written with a text a line. Labels, tags and
// columns that are not read stay out; source prefixes and linear trees are in it.
std::vector<std::string> tokenizer_text(const std::vector<CorpusOptions>& corpora,
                                        Objective objective, const std::string& path);

}  // namespace heed
