// Any bytes as a SentencePiece model: an ordinary Error, or a usable tokenizer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "heed/error.h"
#include "text/tokenizers/spiece_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    const heed::SpieceModel model(bytes, "input");
    for (const std::string text : {"", " a  b", "bc\xc3\xa9<user>\xff", "aaaaaaaaaaaaaaaa"}) {
      std::vector<std::string> pieces;
      for (const auto& token : model.encode(text)) {
        if (token.id < 0 || token.id >= model.size() || token.end > text.size()) std::abort();
        pieces.push_back(model.piece(token.id));
      }
      model.decode(pieces);
    }
  } catch (const heed::Error& error) {
    if (error.code() == heed::ErrorCode::internal) std::abort();
  }
  return 0;
}
