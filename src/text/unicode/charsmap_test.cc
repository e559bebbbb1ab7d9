#include "text/unicode/charsmap.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

// A double array by hand: "A" → "x", and "AB" → "yz" (never found, "A" is shorter), "C" → "".
std::string units(const std::vector<uint32_t>& all) {
  std::string bytes(all.size() * 4, '\0');
  for (size_t i = 0; i < all.size() * 4; ++i) bytes[i] = char(all[i / 4] >> (i % 4 * 8) & 0xFF);
  return bytes;
}

TEST(Charsmap, FindsTheShortestKey) {
  std::vector<uint32_t> trie(512);
  constexpr uint32_t kLeaf = 1 << 8;
  const auto offset = [](uint32_t bytes) { return bytes << 10; };
  trie[0] = offset(256);
  trie[256 ^ 'A'] = 'A' | kLeaf | offset((256 ^ 'A') ^ 3);  // its children: 3 ^ byte, its value: 3
  trie[3] = 1u << 31 | 0;
  trie[3 ^ 'B'] = 'B' | kLeaf | offset((3 ^ 'B') ^ 4);
  trie[4] = 1u << 31 | 2;
  trie[256 ^ 'C'] = 'C' | kLeaf | offset((256 ^ 'C') ^ 5);
  trie[5] = 1u << 31 | 1;
  const std::string bytes = units({512 * 4}) + units(trie) + std::string("x\0yz\0", 5);
  const Charsmap map(bytes);
  EXPECT_EQ(map.find("AB"), "x");
  EXPECT_EQ(map.find("C"), "");
  EXPECT_EQ(map.find("B"), std::nullopt);
  EXPECT_EQ(map.find(""), std::nullopt);
  EXPECT_EQ(map.find(std::string_view("\0", 1)), std::nullopt);
}

TEST(Charsmap, AcceptsDamagedTables) {
  expect_error(ErrorCode::corrupt_file, "truncated", [] { Charsmap("abc"); });
  expect_error(ErrorCode::corrupt_file, "got 400 of 4", [] { Charsmap(units({400, 0})); });
  EXPECT_EQ(Charsmap("").find("a"), std::nullopt);
  // Offsets and values outside the arrays.
  const Charsmap wild(units({8, 0xFFFFFFFF, 0xFFFFFF41}));
  for (int byte = 1; byte < 256; ++byte) wild.find(std::string(3, char(byte)));
}

}  // namespace
}  // namespace heed
