#include "text/containers/string_map.h"

#include <bit>

namespace heed {

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
