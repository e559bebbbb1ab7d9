// What tokenizer.json calls normalizers: rewriting text before it is cut into pieces.
#pragma once

#include <memory>

#include "text/tokenizer_json/aligned_text.h"
#include "text/tokenizer_json/json_node.h"

namespace heed {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Never throws on any text, UTF-8 or not; what is not stays as it is.
  virtual void apply(AlignedText& text) const = 0;
};

// Throws corrupt_file, or unsupported for a kind Heed does not have.
std::unique_ptr<Normalizer> read_normalizer(const JsonNode& node);

}  // namespace heed
