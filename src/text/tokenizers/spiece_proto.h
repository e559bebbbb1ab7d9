// What a SentencePiece model file holds, read and checked before the library sees it.
//
// A model is a protocol buffer (ModelProto of sentencepiece_model.proto). The library trusts what
// is in it: a damaged table of normalisation rules makes it read past its end, and some
// contradictions end the process. Here every length and offset is checked first, and a bad file is
// one Error.
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

// Throws corrupt_file, with `name` for the file, unless the library can load and use it safely.
SpieceProto read_spiece_proto(std::string_view bytes, const std::string& name);

// The same model, except that it does not put a space before a text. Appends a second
// normalizer_spec: protocol buffers merge the fields of a message given twice.
std::string without_dummy_prefix(std::string bytes);

}  // namespace heed
