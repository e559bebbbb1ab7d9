// GPT-2's byte-level alphabet: a printable character for each of the 256 bytes, so that a byte-level
// vocabulary can be stored as text. A space is Ġ, a line break Ċ.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heed {

// The character of each byte, in UTF-8.
const std::array<std::string, 256>& byte_alphabet();

// The byte that a character encodes; -1: none.
int byte_of_character(char32_t c);

// The bytes that a text of the alphabet encodes; none if it has another character.
std::optional<std::string> bytes_of_alphabet(std::string_view text);

}  // namespace heed
