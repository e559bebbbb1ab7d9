// A trie over bytes: finds all texts that are a prefix of a text in one walk.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace heed {

class ByteTrie {
 public:
  // An empty text is never found. An existing text gets the new value.
  void insert(std::string_view text, int32_t value);

  // Calls found(bytes, value) for each text that `text` begins with, shortest first.
  template <class Found>
  void prefixes(std::string_view text, const Found& found) const;

  struct Match {
    size_t bytes = 0;
    int32_t value = -1;  // -1: nothing found
  };
  Match longest_prefix(std::string_view text) const;

  bool begins(char byte) const { return first_[static_cast<unsigned char>(byte)] != 0; }
  bool empty() const { return values_.size() == 1; }

 private:
  // One hash table maps (node, byte) to a child. Node 0 is the root; its children have a separate
  // table, because every walk starts there.
  struct Slot {
    uint64_t key = kFree;
    uint32_t child = 0;
  };
  static constexpr uint64_t kFree = ~uint64_t{0};
  static uint64_t key_of(uint32_t node, unsigned char byte) { return uint64_t{node} << 8 | byte; }
  size_t slot_of(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t at = (key * 0x9E3779B97F4A7C15U >> 32) & mask;
    while (slots_[at].key != key && slots_[at].key != kFree) at = (at + 1) & mask;
    return at;
  }
  uint32_t child(uint32_t node, char byte) const {  // 0: none
    if (node == 0) return first_[static_cast<unsigned char>(byte)];
    return slots_[slot_of(key_of(node, static_cast<unsigned char>(byte)))].child;
  }
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  std::array<uint32_t, 256> first_{};
  std::vector<int32_t> values_ = {-1};  // by node; -1: no text ends here
  size_t children_ = 0;
};

template <class Found>
void ByteTrie::prefixes(std::string_view text, const Found& found) const {
  uint32_t node = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    node = child(node, text[at]);
    if (node == 0) return;
    if (values_[node] >= 0) found(at + 1, values_[node]);
  }
}

inline ByteTrie::Match ByteTrie::longest_prefix(std::string_view text) const {
  Match longest;
  prefixes(text, [&longest](size_t bytes, int32_t value) { longest = {bytes, value}; });
  return longest;
}

}  // namespace heed
