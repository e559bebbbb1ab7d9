// N-grams as small numbers, so that counting them is indexing an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heed {

// An n-gram is known by its first n - 1 tokens, themselves an n-gram, and its last: no hash of the
// whole is ever trusted, so counts are exact. One table serves the texts of one segment.
class NgramTable {
 public:
  static constexpr int32_t kEmpty = 0;  // the n-gram of no tokens

  NgramTable() : slots_(kFirstSlots) {}

  // Forgets all n-grams, keeps the memory.
  void clear();
  // The number of `prefix` and `token` (below 2^32) together: the same for the same, from 1.
  int32_t extend(int32_t prefix, uint32_t token);
  // Numbers given out, kEmpty included.
  int32_t size() const { return static_cast<int32_t>(orders_.size()); }
  // How many tokens it has.
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

// How often each n-gram of one text occurs, and how many there are of each order.
struct NgramCounts {
  std::vector<int32_t> count{};   // by number in the table; may be shorter than the table
  std::vector<int64_t> totals{};  // [order - 1]
};

// Counts the n-grams of orders 1 … max_order into `counts`, whose old content goes.
void count_ngrams(NgramTable& table, const std::vector<uint32_t>& tokens, int max_order,
                  NgramCounts& counts);

// For each order, how many n-grams of `hypothesis` the reference has too, each as often as it has
// it.
std::vector<int64_t> count_matches(const NgramTable& table, const NgramCounts& hypothesis,
                                   const NgramCounts& reference);

// Words as the tokens of a table: the same word, the same number.
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
