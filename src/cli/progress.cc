#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <limits>

namespace heed::cli {
namespace {

// To the start of the line, then erase to its end (ECMA-48 EL): every terminal since the VT100.
constexpr const char* kClearLine = "\r\033[K";

// The first characters of a UTF-8 text.
std::string_view first_characters(std::string_view text, size_t most) {
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins && ++characters > most) return text.substr(0, i);
  }
  return text;
}

}  // namespace

ProgressLine::ProgressLine() : ProgressLine(stderr, isatty(STDERR_FILENO) == 1) {}

// One less than the width: some terminals wrap when the last column is filled.
size_t ProgressLine::columns() const {
  winsize size{};
  const bool known = ioctl(fileno(file_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - size_t{1} : std::numeric_limits<size_t>::max();
}

void ProgressLine::show(std::string_view text) {
  if (!shown_) return;
  text = first_characters(text, columns());
  std::fprintf(file_, "%s%.*s", kClearLine, static_cast<int>(text.size()), text.data());
  std::fflush(file_);
  dirty_ = true;
}

void ProgressLine::clear() {
  if (!dirty_) return;
  std::fputs(kClearLine, file_);
  std::fflush(file_);
  dirty_ = false;
}

}  // namespace heed::cli
