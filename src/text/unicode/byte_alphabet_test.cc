#include "text/unicode/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

#include "text/unicode/utf8.h"

namespace heed {
namespace {

TEST(ByteAlphabet, HasACharacterForEachByte) {
  std::set<std::string> characters;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string& c = byte_alphabet()[size_t(byte)];
    characters.insert(c);
    EXPECT_EQ(byte_of_character(decode_utf8(c, 0).value), byte);
    EXPECT_EQ(bytes_of_alphabet(c), std::string(1, char(byte)));
  }
  EXPECT_EQ(characters.size(), 256U);
}

TEST(ByteAlphabet, EqualsGpt2) {
  EXPECT_EQ(bytes_of_alphabet("ĠaĊĉÃ©ġ"), " a\n\té\x7F");
  EXPECT_EQ(bytes_of_alphabet("Ńÿ"), "\xAD\xFF");
  EXPECT_EQ(bytes_of_alphabet("a b"), std::nullopt);
  EXPECT_EQ(bytes_of_alphabet("東"), std::nullopt);
}

}  // namespace
}  // namespace heed
