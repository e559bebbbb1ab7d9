#include "text/unicode/byte_alphabet.h"

#include "text/unicode/utf8.h"

namespace heed {
namespace {

// Printable Latin-1 characters encode themselves; the other 68 bytes use U+0100 onwards.
constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}
constexpr char32_t kFirstOther = 0x100, kLastOther = 0x143;

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int, kLastOther + 1> bytes{};

  Alphabet() {
    bytes.fill(-1);
    char32_t other = kFirstOther;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t c = stands_for_itself(byte) ? byte : other++;
      characters[byte] = to_utf8(c);
      bytes[c] = static_cast<int>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet kAlphabet;
  return kAlphabet;
}

}  // namespace

const std::array<std::string, 256>& byte_alphabet() { return alphabet().characters; }

int byte_of_character(char32_t c) { return c <= kLastOther ? alphabet().bytes[c] : -1; }

std::optional<std::string> bytes_of_alphabet(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    const int byte = byte_of_character(c.value);
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    at += c.bytes;
  }
  return bytes;
}

}  // namespace heed
