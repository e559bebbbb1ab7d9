// The merges of byte pair encoding: which two ids become which one, and which merge goes first.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace heed {

struct Merge {
  static constexpr uint32_t kNone = ~uint32_t{0};
  uint32_t rank = kNone;  // the smaller, the sooner
  int32_t id = -1;        // what the two become
};

// A hash table with open addressing: a word of ten letters asks it some thirty times.
class MergeTable {
 public:
  explicit MergeTable(size_t merges = 0) : slots_(std::bit_ceil(2 * merges + 2)) {
    shift_ = 64 - std::countr_zero(slots_.size());
  }

  // At most as many as the constructor was told. A pair that is there already gets the new merge.
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
    Merge merge;  // none: the slot is free
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
