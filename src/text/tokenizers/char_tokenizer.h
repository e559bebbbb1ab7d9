// Character (code point) tokenizer: <pad> 0, </s> 1, <unk> 2, further special tokens, then the
// characters of the vocabulary.
//
// Special tokens are recognized in a text, and </s> is appended, as by the byte tokenizer and Heed's
// SentencePiece models. Saved as a tokenizer.json (WordLevel over single characters) that Hugging
// Face's tools read; tokenizer_config.json marks it for load_tokenizer().
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
// Tab, newline and printable ASCII.
std::vector<char32_t> ascii_characters();

// Whether the folder's tokenizer.json was saved by a char tokenizer.
bool is_char_tokenizer(const TokenizerFolder& folder);
TokenizerPtr load_char_tokenizer(const TokenizerFolder& folder);

}  // namespace heed
