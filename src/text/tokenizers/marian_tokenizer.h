// Marian's tokenizers (OPUS-MT): a SentencePiece model for each language and one vocabulary, or one
// for each, that gives the pieces their ids.
//
// A text may start with the language to translate into, ">>fra<<". Files: source.spm, target.spm,
// vocab.json; target_vocab.json too when tokenizer_config.json says "separate_vocabs".
#pragma once

#include "heed/tokenizer.h"

namespace heed {

class TokenizerFolder;

bool is_marian_tokenizer(const TokenizerFolder& folder);
TokenizerPtr load_marian_tokenizer(const TokenizerFolder& folder);

}  // namespace heed
