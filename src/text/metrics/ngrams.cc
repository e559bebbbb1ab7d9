#include "text/metrics/ngrams.h"

#include <algorithm>

namespace heed {

void NgramTable::clear() {
  orders_.resize(1);
  if (++round_ == 0) {  // wrapped around: old slots would look current
    std::fill(slots_.begin(), slots_.end(), Slot{});
    round_ = 1;
  }
}

NgramTable::Slot& NgramTable::find(uint64_t key) {
  const size_t mask = slots_.size() - 1;
  uint64_t hash = key * 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio: Fibonacci hashing
  hash ^= hash >> 32;
  size_t i = static_cast<size_t>(hash) & mask;
  while (slots_[i].round == round_ && slots_[i].key != key) i = (i + 1) & mask;
  return slots_[i];
}

void NgramTable::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.round == round_) find(slot.key) = slot;
  }
}

int32_t NgramTable::extend(int32_t prefix, uint32_t token) {
  if (orders_.size() * 2 > slots_.size()) grow();
  const uint64_t key = (static_cast<uint64_t>(prefix) << 32) | token;
  Slot& slot = find(key);
  if (slot.round != round_) {
    slot = {.key = key, .id = size(), .round = round_};
    orders_.push_back(order(prefix) + 1);
  }
  return slot.id;
}

void count_ngrams(NgramTable& table, const std::vector<uint32_t>& tokens, int max_order,
                  NgramCounts& counts) {
  counts.count.assign(static_cast<size_t>(table.size()), 0);
  counts.totals.assign(static_cast<size_t>(max_order), 0);
  for (size_t begin = 0; begin < tokens.size(); ++begin) {
    const size_t orders = std::min(static_cast<size_t>(max_order), tokens.size() - begin);
    int32_t ngram = NgramTable::kEmpty;
    for (size_t n = 0; n < orders; ++n) {
      ngram = table.extend(ngram, tokens[begin + n]);
      if (static_cast<size_t>(ngram) >= counts.count.size()) counts.count.push_back(0);
      ++counts.count[static_cast<size_t>(ngram)];
      ++counts.totals[n];
    }
  }
}

std::vector<int64_t> count_matches(const NgramTable& table, const NgramCounts& hypothesis,
                                   const NgramCounts& reference) {
  std::vector<int64_t> matches(hypothesis.totals.size(), 0);
  const size_t common = std::min(hypothesis.count.size(), reference.count.size());
  for (size_t i = 1; i < common; ++i) {  // 0 is kEmpty
    const int32_t shared = std::min(hypothesis.count[i], reference.count[i]);
    if (shared > 0) {
      matches[static_cast<size_t>(table.order(static_cast<int32_t>(i))) - 1] += shared;
    }
  }
  return matches;
}

uint32_t WordNumbers::operator()(std::string_view word) {
  const auto found = numbers_.find(word);
  if (found != numbers_.end()) return found->second;
  const auto number = static_cast<uint32_t>(numbers_.size());
  numbers_.emplace(word, number);
  return number;
}

std::vector<uint32_t> WordNumbers::operator()(const std::vector<std::string_view>& words) {
  std::vector<uint32_t> numbers;
  numbers.reserve(words.size());
  for (const std::string_view word : words) numbers.push_back((*this)(word));
  return numbers;
}

}  // namespace heed
