// A hash table from tokens to ids, optimized for look-ups of short texts.
#pragma once

#define XXH_INLINE_ALL  // a call per look-up would cost 1 ns of 4.5
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace heed {

class StringMap {
 public:
  // The texts are not copied: they must outlive the map.
  void reserve(size_t texts);
  // Returns the existing id, which is kept, or -1 for a new text.
  int32_t insert(std::string_view text, int32_t id);
  int32_t find(std::string_view text) const;  // -1: not found
  size_t size() const { return size_; }

 private:
  struct Slot {
    uint64_t hash = 0;
    const char* text = nullptr;  // null: free
    uint32_t bytes = 0;
    int32_t id = 0;
  };
  static uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }
  // The text's slot, or the free one to insert it at. At least half of the slots are free.
  size_t slot_of(std::string_view text, uint64_t hash) const;
  void grow(size_t slots);

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  size_t size_ = 0;
};

inline size_t StringMap::slot_of(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].text != nullptr) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && slot.bytes == text.size() &&
        std::memcmp(slot.text, text.data(), text.size()) == 0) {
      break;
    }
    at = (at + 1) & mask;
  }
  return at;
}

inline int32_t StringMap::find(std::string_view text) const {
  const Slot& slot = slots_[slot_of(text, hash_of(text))];
  return slot.text == nullptr ? -1 : slot.id;
}

}  // namespace heed
