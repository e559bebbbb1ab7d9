// Results on their way to standard output, with every write checked: a full disk must not look
// like success.
#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace heed::cli {

// The reader of our output has closed it, as `head` does. Nobody is left to write for, so the
// command ends quietly: this is not an Error.
class ReaderGone : public std::exception {
 public:
  const char* what() const noexcept override { return "the reader of the output has gone"; }
};

// One line "label: text" on standard error. What a file or a flag has brought into the text must
// not steer the terminal or fill it: see printable().
void print_message(std::string_view label, std::string_view text);

// The text as one line that is safe to show: a space for a line break, \x1b and the like for
// control characters and for what is not UTF-8, and of very long text only the beginning and the
// end.
std::string printable(std::string_view text);

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
