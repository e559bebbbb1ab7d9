// Models of a few kilobytes, as large as a fuzzer's input.
#pragma once

#include "model/config.h"

namespace heed::fuzz {

inline ModelConfig smallest_config(Family family) {
  ModelConfig c;
  c.family = family;
  c.vocabulary = 8, c.width = 4, c.heads = 2, c.ffn = 4;
  c.encoder_layers = family == Family::decoder_only ? 0 : 1;
  c.decoder_layers = family == Family::encoder_only ? 0 : 1;
  c.max_positions = 8;
  c.dropout = c.embedding_dropout = 0;
  c.pad_id = 0, c.eos_id = 1, c.decoder_start_id = 0;
  if (family == Family::encoder_only) c.head = Head::masked_lm;
  return c;
}

}  // namespace heed::fuzz
