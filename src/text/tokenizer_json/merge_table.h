// BPE merges: the id and the rank of each mergeable pair.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace heed {

struct Merge {
  static constexpr uint32_t kNone = ~uint32_t{0};
  uint32_t rank = kNone;  // lower ranks merge first
  int32_t id = -1;        // of the merged token
};

// A hash table with open addressing: a word of ten letters takes about thirty look-ups.
class MergeTable {
 public:
  explicit MergeTable(size_t merges = 0) : slots_(std::bit_ceil(2 * merges + 2)) {
    shift_ = 64 - std::countr_zero(slots_.size());
  }

  // At most as many as the constructor was given. An existing pair gets the new merge.
  void insert(int32_t left, int32_t right, Merge merge) {
    const uint64_t key = key_of(left, right);
    slots_[slot_of(key)] = {key, merge};
  }
  Merge find(int32_t left, int32_t right) const {
    return slots_[slot_of(key_of(left, right))].merge;
  }

 private:
  struct Slot {
    uint64_t key = ~uint64_t{0};
    Merge merge;  // kNone: the slot is free
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t at = key * 0x9E3779B97F4A7C15U >> shift_;
    while (slots_[at].key != key && slots_[at].merge.rank != Merge::kNone) at = (at + 1) & mask;
    return at;
  }

  std::vector<Slot> slots_;
  int shift_ = 0;
};

}  // namespace heed
