// Results on their way to standard output, with every write checked: a full disk must not look
// like success.
#pragma once

#include <cstdio>
#include <exception>
#include <string_view>

namespace heed::cli {

// The reader of our output has closed it, as `head` does. Nobody is left to write for, so the
// command ends quietly: this is not an Error.
class ReaderGone : public std::exception {
 public:
  const char* what() const noexcept override { return "the reader of the output has gone"; }
};

class Output {
 public:
  explicit Output(std::FILE* file) : file_(file) {}  // borrowed

  // Both throw ReaderGone, or an Error when the text cannot be written. The text may wait in a
  // buffer until flush(); main() flushes at the end.
  void write(std::string_view text);
  void flush();

 private:
  std::FILE* file_;
};

}  // namespace heed::cli
