// SentencePiece's compiled normalization rules, as in tokenizer.json's "Precompiled" normalizer.
//
// The bytes are: the size of a trie (32 bits, little-endian), the trie (a Darts double array of
// 32-bit units), and the NUL-terminated replacements. A key's value in the trie is the offset of its
// replacement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

class Charsmap {
 public:
  // Throws corrupt_file for inconsistent sizes.
  explicit Charsmap(std::string_view bytes);

  // The replacement of the shortest key that `text` begins with.
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace heed
