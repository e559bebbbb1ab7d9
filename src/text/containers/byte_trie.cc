#include "text/containers/byte_trie.h"

namespace heed {

void ByteTrie::insert(std::string_view text, int32_t value) {
  if (text.empty()) return;
  uint32_t node = 0;
  for (const char byte : text) {
    uint32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<uint32_t>(values_.size());
      values_.push_back(-1);
      if (node == 0) {
        first_[static_cast<unsigned char>(byte)] = next;
      } else {
        if (2 * (children_ + 1) > slots_.size()) grow();
        const uint64_t key = key_of(node, static_cast<unsigned char>(byte));
        slots_[slot_of(key)] = {key, next};
        ++children_;
      }
    }
    node = next;
  }
  values_[node] = value;
}

void ByteTrie::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.key != kFree) slots_[slot_of(slot.key)] = slot;
  }
}

}  // namespace heed
