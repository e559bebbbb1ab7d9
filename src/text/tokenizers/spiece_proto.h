// Parses and validates a SentencePiece model file before the library loads it.
//
// A model is a protocol buffer (ModelProto of sentencepiece_model.proto). The library trusts its
// content: a damaged table of normalization rules makes it read out of bounds, and some
// inconsistencies abort the process. Every length and offset is checked here; a bad file throws.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// SentencePiece.Type in sentencepiece_model.proto, by its numbers.
enum class PieceType {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct SpieceProto {
  struct Piece {
    std::string_view text;  // of the file's bytes
    float score = 0;
    PieceType type = PieceType::normal;
  };
  std::vector<Piece> pieces;
  bool byte_fallback = false;
};

// Throws corrupt_file, naming the file `name`, unless the library can load and use it safely.
SpieceProto read_spiece_proto(std::string_view bytes, const std::string& name);

// The same model without the dummy prefix (the space before a text). Appends a second
// normalizer_spec: protocol buffers merge repeated occurrences of a message field.
std::string without_dummy_prefix(std::string bytes);

}  // namespace heed
