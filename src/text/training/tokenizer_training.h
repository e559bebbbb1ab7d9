// The trainers of train_tokenizer(), one per type.
#pragma once

#include "heed/tokenizer.h"

namespace heed {

TokenizerPtr train_spiece(const TokenizerTraining& training, TokenizerTrainingReport& report);
TokenizerPtr train_byte_bpe(const TokenizerTraining& training, TokenizerTrainingReport& report);
TokenizerPtr train_roberta(const TokenizerTraining& training, TokenizerTrainingReport& report);
TokenizerPtr train_wordpiece(const TokenizerTraining& training, TokenizerTrainingReport& report);
TokenizerPtr train_char(const TokenizerTraining& training, TokenizerTrainingReport& report);

}  // namespace heed
