// The text of ids that come one by one.
//
//   TextStream stream(tokenizer, {"\n\n"}, prompt);
//   show(stream.add(id));        // what can be shown for certain
//   show(stream.finish());       // the rest
//
// A character may be spread over several ids, and a stop text over several pieces: what may still
// turn into one is held back. The pieces together are the decoding of all ids, up to the first
// stop text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

class TextStream {
 public:
  // `before`: ids that the text follows; a word's space is told by them.
  TextStream(TokenizerPtr tokenizer, std::vector<std::string> stop,
             std::span<const int32_t> before);

  std::string add(int32_t id);
  std::string finish();

 private:
  void read_new(bool all);
  std::string give(bool all);

  TokenizerPtr tokenizer_;
  std::vector<std::string> stop_;
  std::vector<int32_t> ids_;    // some before, and those that came
  size_t from_ = 0, read_ = 0;  // ids_[from_, read_) are the context of what is read next
  std::string held_;
  bool stopped_ = false;
};

}  // namespace heed
