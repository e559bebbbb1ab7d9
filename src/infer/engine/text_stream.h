// Streaming detokenization: text from ids, one by one.
//
//   TextStream stream(tokenizer, {"\n\n"}, prompt);
//   show(stream.add(id));        // final text
//   show(stream.finish());       // the rest
//
// A character may span several ids, and a stop string several pieces: a possible beginning of one
// is held back. The pieces together are the decoding of all ids, up to the first stop string.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

class TextStream {
 public:
  // `before`: ids before the text, which decide whether its first word has a space.
  TextStream(TokenizerPtr tokenizer, std::vector<std::string> stop,
             std::span<const int32_t> before);

  std::string add(int32_t id);
  std::string finish();

 private:
  void read_new(bool all);
  std::string give(bool all);

  TokenizerPtr tokenizer_;
  std::vector<std::string> stop_;
  std::vector<int32_t> ids_;    // the last ones before, then the added ones
  size_t from_ = 0, read_ = 0;  // ids_[from_, read_): context of the next ids
  std::string held_;
  bool stopped_ = false;
};

}  // namespace heed
