// Marian's tokenizers (OPUS-MT): a SentencePiece model per language, and one shared vocabulary or two
// that map pieces to ids.
//
// A text may start with the target language, ">>fra<<". Files: source.spm, target.spm, vocab.json; and
// target_vocab.json with "separate_vocabs" in tokenizer_config.json.
#pragma once

#include "heed/tokenizer.h"

namespace heed {

class TokenizerFolder;

bool is_marian_tokenizer(const TokenizerFolder& folder);
TokenizerPtr load_marian_tokenizer(const TokenizerFolder& folder);

}  // namespace heed
