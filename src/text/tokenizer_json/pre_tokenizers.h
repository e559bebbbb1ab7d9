// The pre-tokenizers of tokenizer.json: split text into the pieces ("words") that the subword model
// encodes one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "text/tokenizer_json/aligned_text.h"
#include "text/tokenizer_json/json_node.h"

namespace heed {

struct TextPiece {
  uint32_t begin = 0, end = 0;  // bytes of the text; never empty
  int32_t id = -1;              // an added token, which is never split or changed; -1: none
};

struct SplitText {
  AlignedText text;
  std::vector<TextPiece> pieces;  // from left to right; text between them is dropped
  size_t source_begin = 0;        // offset of the text in the source
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void split(SplitText& split) const = 0;

  // True if it needs source spans even when the caller does not.
  virtual bool needs_sources() const { return false; }
  // Skips the last step, which writes bytes in the byte alphabet. False: there is no such step.
  virtual bool keep_bytes() { return false; }
};

// Throws corrupt_file, or unsupported for an unknown type.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonNode& node);

}  // namespace heed
