#include "cli/progress.h"

#include <unistd.h>

namespace heed::cli {
namespace {

// To the start of the line, then erase to its end (ECMA-48 EL): every terminal since the VT100.
constexpr const char* kStartAfresh = "\r\033[K";

}  // namespace

ProgressLine::ProgressLine() : ProgressLine(stderr, isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(std::string_view text) {
  if (!shown_) return;
  std::fprintf(file_, "%s%.*s", kStartAfresh, static_cast<int>(text.size()), text.data());
  std::fflush(file_);
  dirty_ = true;
}

void ProgressLine::clear() {
  if (!dirty_) return;
  std::fputs(kStartAfresh, file_);
  std::fflush(file_);
  dirty_ = false;
}

}  // namespace heed::cli
