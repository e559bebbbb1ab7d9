// A progress line on standard error, rewritten in place.
//
// Shown only if standard error is a terminal. Cut to its width, because a wrapped line cannot be
// rewritten.
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
  size_t columns() const;  // current width of the terminal; large if unknown
  void clear();

 private:
  std::FILE* file_;
  bool shown_;
  bool dirty_ = false;  // whether the line has text
};

}  // namespace heed::cli
