// A hash table from tokens to ids, optimized for look-ups of short texts.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace heed {

// Good enough to spread short texts, and fast: sixteen bytes cost two loads and one multiplication.
inline uint64_t hash_text(std::string_view text) {
  const auto load = [](const char* from, size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, from, bytes);
    return value;
  };
  const auto mix = [](uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  constexpr uint64_t kOne = 0x9E3779B97F4A7C15U, kTwo = 0xD1B54A32D192ED03U;
  uint64_t hash = text.size() * kOne;
  const char* data = text.data();
  size_t left = text.size();
  for (; left > 16; left -= 16, data += 16) {
    hash = mix(load(data, 8) ^ kOne ^ hash, load(data + 8, 8) ^ kTwo);
  }
  uint64_t first = 0, second = 0;
  if (left >= 8) {
    first = load(data, 8);
    second = load(data + left - 8, 8);
  } else if (left >= 4) {
    first = load(data, 4);
    second = load(data + left - 4, 4);
  } else if (left > 0) {
    first = static_cast<unsigned char>(data[0]) |
            uint64_t{static_cast<unsigned char>(data[left / 2])} << 8 |
            uint64_t{static_cast<unsigned char>(data[left - 1])} << 16;
  }
  return mix(first ^ kTwo ^ hash, second ^ kOne);
}

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
  const Slot& slot = slots_[slot_of(text, hash_text(text))];
  return slot.text == nullptr ? -1 : slot.id;
}

}  // namespace heed
