// One line on standard error that says how far a command has come, rewritten in place.
//
// Nothing is shown unless standard error is a terminal: in a log file the line would be noise. What
// is wider than the terminal is cut: a line that wraps can only be rewritten in its last part.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string_view>

namespace heed::cli {

class ProgressLine {
 public:
  ProgressLine();  // on standard error, if that is a terminal
  ProgressLine(std::FILE* file, bool shown) : file_(file), shown_(shown) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);
  size_t columns() const;  // that fit, as the terminal is now; many where it does not tell
  void clear();

 private:
  std::FILE* file_;
  bool shown_;
  bool dirty_ = false;  // whether a text stands on the line
};

}  // namespace heed::cli
