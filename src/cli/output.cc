#include "cli/output.h"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "heed/error.h"

namespace heed::cli {
namespace {

[[noreturn]] void throw_write_error(int error) {
  if (error == EPIPE) throw ReaderGone();
  throw Error(ErrorCode::invalid_argument,
              "cannot write the results: " + std::generic_category().message(error),
              "check the space and the permissions where standard output goes");
}

// A byte inside a UTF-8 character.
bool is_continuation(char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; }

// The bytes of the UTF-8 character that the text begins with; 0: it begins with none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const size_t bytes = byte(0) < 0x80   ? 1
                       : byte(0) < 0xc2 ? 0
                       : byte(0) < 0xe0 ? 2
                       : byte(0) < 0xf0 ? 3
                       : byte(0) < 0xf5 ? 4
                                        : 0;
  if (bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  if (bytes < 3) return bytes;
  const bool is_overlong =
      (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool is_surrogate = byte(0) == 0xed && byte(1) >= 0xa0;
  const bool is_too_large = byte(0) == 0xf4 && byte(1) >= 0x90;
  return is_overlong || is_surrogate || is_too_large ? 0 : bytes;
}

// Of one character; U+0080 … U+009F steer terminals too.
bool is_control(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;
}

}  // namespace

std::string printable(std::string_view text) {
  // Lists of problems are long; lines of a file that is no text are longer.
  constexpr size_t kMost = 2000, kBegin = 1200, kEnd = 400;
  constexpr const char* kDigits = "0123456789abcdef";
  if (text.size() > kMost) {
    size_t begin = kBegin, end = text.size() - kEnd;
    for (int i = 0; i < 3 && is_continuation(text[begin]); ++i) --begin;
    for (int i = 0; i < 3 && is_continuation(text[end]); ++i) ++end;
    return printable(text.substr(0, begin)) + " … " + printable(text.substr(end));
  }
  std::string line;
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const std::string_view part = text.substr(0, bytes > 0 ? bytes : 1);
    text.remove_prefix(part.size());
    if (part == "\n" || part == "\r") {
      line += ' ';
    } else if (bytes > 0 && !is_control(part)) {
      line += part;
    } else {
      for (const char c : part) {
        const auto byte = static_cast<uint8_t>(c);
        line.append("\\x").append({kDigits[byte / 16], kDigits[byte % 16]});
      }
    }
  }
  return line;
}

bool is_text(std::string_view line) {
  while (!line.empty()) {
    const size_t bytes = character_bytes(line);
    if (bytes == 0 || line[0] == '\0') return false;
    line.remove_prefix(bytes);
  }
  return true;
}

std::string message_text(std::string_view label, std::string_view text) {
  constexpr std::string_view kItem = "\n  - ";
  std::string lines = std::string(label) + ": ";
  for (;;) {
    const size_t end = text.find(kItem);
    lines += printable(text.substr(0, end));
    if (end == std::string_view::npos) return lines + "\n";
    lines += kItem;
    text.remove_prefix(end + kItem.size());
  }
}

void print_message(std::string_view label, std::string_view text) {
  const std::string lines = message_text(label, text);
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

void Output::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) throw_write_error(errno);
}

void Output::flush() {
  if (std::fflush(file_) != 0) throw_write_error(errno);
}

}  // namespace heed::cli
