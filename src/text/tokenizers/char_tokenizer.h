// Characters (Unicode's code points) as tokens: <pad> 0, </s> 1, <unk> 2, further special tokens,
// then the characters of a vocabulary.
//
// Special tokens are recognised in a text, and </s> is appended, as bytes and our own SentencePiece
// models have it. Saved as a tokenizer.json (WordLevel over single characters) that Hugging Face's
// tools read; tokenizer_config.json says that it is ours, so that load_tokenizer() comes back here.
#pragma once

#include <string>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

class TokenizerFolder;

struct CharTokenizerOptions {
  std::vector<char32_t> characters;  // in the order of their ids
  std::vector<std::string> special_tokens{};
  bool lowercase = false;
};

TokenizerPtr make_char_tokenizer(const CharTokenizerOptions& options);
// The characters of no text in particular: tab, newline and ASCII's visible ones.
std::vector<char32_t> ascii_characters();

// Whether the folder's tokenizer.json is one that a char tokenizer has saved.
bool is_char_tokenizer(const TokenizerFolder& folder);
TokenizerPtr load_char_tokenizer(const TokenizerFolder& folder);

}  // namespace heed
