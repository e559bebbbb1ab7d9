// The normalizers of tokenizer.json: rewrite text before pre-tokenization.
#pragma once

#include <memory>

#include "text/tokenizer_json/aligned_text.h"
#include "text/tokenizer_json/json_node.h"

namespace heed {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Never throws for any text; invalid UTF-8 is kept unchanged.
  virtual void apply(AlignedText& text) const = 0;
};

// Throws corrupt_file, or unsupported for an unknown type.
std::unique_ptr<Normalizer> read_normalizer(const JsonNode& node);

}  // namespace heed
