// What tokenizer.json calls decoders: pieces back into text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer_json/json_node.h"

namespace heed {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Changes the pieces so that, joined, they are the text.
  virtual void apply(std::vector<std::string>& pieces) const = 0;
};

// Throws corrupt_file, or unsupported for a kind Heed does not have.
std::unique_ptr<Decoder> read_decoder(const JsonNode& node);

}  // namespace heed
