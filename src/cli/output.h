// Standard output with checked writes: a full disk is an error.
#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace heed::cli {

// The reader of standard output has closed it, as `head` does. The command ends with status 0: not an
// Error.
class ReaderGone : public std::exception {
 public:
  const char* what() const noexcept override { return "standard output was closed by its reader"; }
};

// "label: text" on standard error: one line, and one for each item of a list ("\n  - item"). The text
// is made printable(), because parts of files and flags could contain control sequences.
void print_message(std::string_view label, std::string_view text);
std::string message_text(std::string_view label, std::string_view text);

// The text as one line that is safe to show: a space for a line break, \x1b and the like for
// control characters and for what is not UTF-8, and of very long text only the beginning and the
// end.
std::string printable(std::string_view text);

// Whether a line is UTF-8 without NUL: text, and no part of a binary file.
bool is_text(std::string_view line);

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
