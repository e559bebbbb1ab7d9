// What tokenizer.json calls pre-tokenizers: cutting text into the pieces that a model sees one by
// one ("words").
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "text/tokenizer_json/aligned_text.h"
#include "text/tokenizer_json/json_node.h"

namespace heed {

struct TextPiece {
  uint32_t begin = 0, end = 0;  // bytes of the text; never empty
  int32_t id = -1;              // an added token, which nothing cuts or changes; -1: none
};

struct SplitText {
  AlignedText text;
  std::vector<TextPiece> pieces;  // from left to right; what lies between them is left out
  size_t source_begin = 0;        // where the text began in the source
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void split(SplitText& split) const = 0;

  // True if it needs to know where its pieces came from, whether or not the caller does.
  virtual bool needs_sources() const { return false; }
  // Asks it to leave out its last step, which writes each byte as a character of the byte alphabet.
  // False: it has no such step.
  virtual bool keep_bytes() { return false; }
};

// Throws corrupt_file, or unsupported for a kind Heed does not have.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonNode& node);

}  // namespace heed
