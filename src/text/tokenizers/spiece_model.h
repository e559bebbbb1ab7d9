// A SentencePiece model: text to pieces and back, by the SentencePiece library.
//
// Input that would abort the process inside the library is rejected before; its status codes become
// an Error. Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizers/spiece_proto.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace heed {

class SpieceModel {
 public:
  struct Token {
    int32_t id = 0;
    std::string piece;          // the text itself if unknown
    size_t begin = 0, end = 0;  // bytes of the text
  };

  // From a file's bytes; `name` is for messages. Throws corrupt_file.
  SpieceModel(std::string bytes, std::string name);
  SpieceModel(SpieceModel&&) noexcept;
  SpieceModel& operator=(SpieceModel&&) noexcept;
  ~SpieceModel();

  std::vector<Token> encode(std::string_view text) const;
  std::vector<int> encode_ids(std::string_view text) const;
  std::string decode(const std::vector<std::string>& pieces) const;

  int32_t size() const { return static_cast<int32_t>(types_.size()); }
  std::string piece(int32_t id) const;
  int32_t find(std::string_view piece) const;  // the unknown id if there is none
  PieceType type(int32_t id) const { return types_.at(static_cast<size_t>(id)); }
  int32_t unknown() const { return unknown_; }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_, name_;
  std::vector<PieceType> types_;
  int32_t unknown_ = 0;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

// Turns off the library's own messages on standard error.
void silence_sentencepiece();

}  // namespace heed
