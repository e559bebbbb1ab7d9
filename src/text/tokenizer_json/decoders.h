// The decoders of tokenizer.json: tokens to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer_json/json_node.h"

namespace heed {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Rewrites the tokens so that joining them gives the text.
  virtual void apply(std::vector<std::string>& pieces) const = 0;
};

// Throws corrupt_file, or unsupported for an unknown type.
std::unique_ptr<Decoder> read_decoder(const JsonNode& node);

}  // namespace heed
