// A hash table from tokens to ids, optimized for look-ups of short texts.
#pragma once

#include <cstdint>
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
  // The text's slot, or the free one to insert it at. At least half of the slots are free.
  size_t slot_of(std::string_view text, uint64_t hash) const;
  void grow(size_t slots);

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  size_t size_ = 0;
};

}  // namespace heed
