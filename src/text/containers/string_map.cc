#include "text/containers/string_map.h"

#define XXH_INLINE_ALL  // for short texts a call would cost as much as the hash
#include <xxhash.h>

#include <bit>
#include <cstring>

namespace heed {
namespace {

uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

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

int32_t StringMap::find(std::string_view text) const {
  const Slot& slot = slots_[slot_of(text, hash_of(text))];
  return slot.text == nullptr ? -1 : slot.id;
}

void StringMap::reserve(size_t texts) {
  const size_t slots = std::bit_ceil(2 * texts + 1);
  if (slots > slots_.size()) grow(slots);
}

int32_t StringMap::insert(std::string_view text, int32_t id) {
  if (2 * (size_ + 1) > slots_.size()) grow(2 * slots_.size());
  const uint64_t hash = hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.text != nullptr) return slot.id;
  // An empty text may have a null pointer, which would mark the slot as free.
  slot = {hash, text.empty() ? "" : text.data(), static_cast<uint32_t>(text.size()), id};
  ++size_;
  return -1;
}

void StringMap::grow(size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.text != nullptr) slots_[slot_of({slot.text, slot.bytes}, slot.hash)] = slot;
  }
}

}  // namespace heed
