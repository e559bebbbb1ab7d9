// Small models with random weights, and requests for them.
#pragma once

#include <memory>
#include <vector>

#include "base/philox.h"
#include "heed/engine.h"
#include "model/network.h"

namespace heed {

inline ModelConfig tiny_config(Family family) {
  ModelConfig c;
  c.family = family;
  c.vocabulary = 384;  // the byte tokenizer's
  c.width = 32, c.heads = 4, c.ffn = 48;
  c.encoder_layers = c.decoder_layers = 2;
  c.max_positions = 96;
  c.dropout = c.embedding_dropout = 0;
  c.eos_id = 1, c.pad_id = 0, c.decoder_start_id = 0;
  return c;
}

inline Model tiny_model(Family family, uint64_t seed = 1) {
  return {std::make_shared<const Network>(tiny_config(family), seed), make_tokenizer("byte")};
}

// Sequences of different lengths.
inline std::vector<std::vector<int32_t>> random_inputs(size_t count, uint64_t seed,
                                                       int32_t vocabulary = 384,
                                                       uint32_t longest = 40) {
  std::vector<std::vector<int32_t>> inputs(count);
  for (size_t i = 0; i < count; ++i) {
    const auto draw = [&](uint64_t block) {
      return random_block({.seed = seed, .step = static_cast<uint32_t>(i), .site = 1}, block)[0];
    };
    const uint32_t length = 1 + draw(0) % longest;
    for (uint32_t k = 0; k < length; ++k) {
      inputs[i].push_back(
          static_cast<int32_t>(3 + draw(k + 1) % static_cast<uint32_t>(vocabulary - 3)));
    }
  }
  return inputs;
}

}  // namespace heed
