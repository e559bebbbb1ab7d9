// Text and tokenizers for `heed bench text` where none are given, so that it needs no download.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/tokenizer.h"

namespace heed::bench {

// Artificial words with a Zipf distribution; about 2 MB.
std::vector<std::string> made_up_lines(uint64_t seed);

// Tokenizers whose vocabulary is the most frequent words of the text and their prefixes. They
// compress worse than trained ones and do the same work.
TokenizerPtr bpe_of(const std::vector<std::string>& lines);
TokenizerPtr wordpiece_of(const std::vector<std::string>& lines);

}  // namespace heed::bench
