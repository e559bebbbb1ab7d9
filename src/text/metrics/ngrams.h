// N-grams as small integers, so that counting is array indexing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heed {

// An n-gram is identified by its prefix of n - 1 tokens, itself an n-gram, and its last token: no hash
// collisions, so counts are exact. One table serves the texts of one segment.
class NgramTable {
 public:
  static constexpr int32_t kEmpty = 0;  // the empty n-gram

  NgramTable() : slots_(kFirstSlots) {}

  // Removes all n-grams; keeps the memory.
  void clear();
  // The number of the n-gram `prefix` + `token`, from 1.
  int32_t extend(int32_t prefix, uint32_t token);
  // N-grams, including kEmpty.
  int32_t size() const { return static_cast<int32_t>(orders_.size()); }
  // Its number of tokens.
  int32_t order(int32_t ngram) const { return orders_[static_cast<size_t>(ngram)]; }

 private:
  struct Slot {
    uint64_t key = 0;
    int32_t id = 0;
    uint32_t round = 0;  // a slot of an earlier round is free
  };
  static constexpr size_t kFirstSlots = 1024;  // a power of two

  void grow();
  Slot& find(uint64_t key);

  std::vector<Slot> slots_;
  uint32_t round_ = 1;
  std::vector<int32_t> orders_ = {0};  // by number
};

// The counts of a text's n-grams, and their total by order.
struct NgramCounts {
  std::vector<int32_t> count{};   // by number in the table; may be shorter than the table
  std::vector<int64_t> totals{};  // [order - 1]
};

// Counts the n-grams of orders 1 … max_order into `counts`, replacing its content.
void count_ngrams(NgramTable& table, const std::vector<uint32_t>& tokens, int max_order,
                  NgramCounts& counts);

// For each order, the n-grams of `hypothesis` that match, clipped to their count in the reference.
std::vector<int64_t> count_matches(const NgramTable& table, const NgramCounts& hypothesis,
                                   const NgramCounts& reference);

// Numbers words: equal words have equal numbers.
class WordNumbers {
 public:
  uint32_t operator()(std::string_view word);
  std::vector<uint32_t> operator()(const std::vector<std::string_view>& words);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> numbers_;
};

}  // namespace heed
