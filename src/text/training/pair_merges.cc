#include "text/training/pair_merges.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"

namespace heed {
namespace {

using PairKey = uint64_t;  // left in the upper half: keys sort like pairs

PairKey key_of(int32_t left, int32_t right) {
  return static_cast<PairKey>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}
int32_t left_of(PairKey key) { return static_cast<int32_t>(key >> 32); }
int32_t right_of(PairKey key) { return static_cast<int32_t>(key & 0xffffffffU); }

struct KeyHash {
  size_t operator()(PairKey key) const {
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15U;
    return static_cast<size_t>(key ^ key >> 29);
  }
};

struct Candidate {
  int64_t count = 0;
  PairKey key = 0;

  bool operator<(const Candidate& other) const {  // the heap pops the largest first
    return count != other.count ? count < other.count : key > other.key;
  }
};

class Learner {
 public:
  Learner(std::vector<TrainingWord> words, std::vector<std::string>& names,
          const PairMergesOptions& options)
      : words_(std::move(words)), names_(names), options_(options) {
    for (size_t id = 0; id < names_.size(); ++id) {
      by_name_.emplace(names_[id], static_cast<int32_t>(id));
    }
    HEED_CHECK(by_name_.size() == names_.size(), "symbol names must be unique");
    for (size_t word = 0; word < words_.size(); ++word) {
      const std::vector<int32_t>& symbols = words_[word].symbols;
      for (size_t i = 1; i < symbols.size(); ++i) {
        add(key_of(symbols[i - 1], symbols[i]), words_[word].count, static_cast<int32_t>(word));
      }
    }
    changed_.clear();
    for (const auto& [key, pair] : pairs_) push(key, pair.count);
  }

  std::vector<PairMerge> run() {
    std::vector<PairMerge> merges;
    const auto start = static_cast<double>(names_.size());
    while (static_cast<int64_t>(names_.size()) < options_.symbols && !heap_.empty()) {
      const Candidate top = heap_.top();
      heap_.pop();
      const auto found = pairs_.find(top.key);
      const int64_t count = found == pairs_.end() ? 0 : found->second.count;
      if (count != top.count) {
        // Stale: its count has decreased. (One whose count increased was pushed again.)
        if (count < top.count) push(top.key, count);
        continue;
      }
      merges.push_back({left_of(top.key), right_of(top.key), symbol_for(top.key)});
      merge(merges.back());
      if (options_.progress && merges.size() % 64 == 0) {
        options_.progress((static_cast<double>(names_.size()) - start) /
                          (static_cast<double>(options_.symbols) - start));
      }
    }
    return merges;
  }

 private:
  struct Pair {
    int64_t count = 0;
    std::vector<int32_t> words;  // that contained it, ascending, possibly repeated
  };

  void push(PairKey key, int64_t count) {
    if (count >= std::max<int64_t>(options_.min_count, 1)) heap_.push({count, key});
  }

  void add(PairKey key, int64_t count, int32_t word) {
    Pair& pair = pairs_[key];
    pair.count += count;
    if (count > 0 && (pair.words.empty() || pair.words.back() != word)) pair.words.push_back(word);
    if (count > 0) changed_.insert(key);
  }

  int32_t symbol_for(PairKey key) {
    std::string name = names_[static_cast<size_t>(left_of(key))];
    const std::string& right = names_[static_cast<size_t>(right_of(key))];
    const std::string& prefix = options_.continuing_prefix;
    name += right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    const auto [found, is_new] = by_name_.emplace(name, static_cast<int32_t>(names_.size()));
    if (is_new) names_.push_back(std::move(name));
    return found->second;
  }

  void merge(const PairMerge& merge) {
    const PairKey key = key_of(merge.left, merge.right);
    std::vector<int32_t> with_it = std::move(pairs_[key].words);
    pairs_.erase(key);
    changed_.clear();
    std::sort(with_it.begin(), with_it.end());
    with_it.erase(std::unique(with_it.begin(), with_it.end()), with_it.end());
    for (const int32_t word : with_it) merge_in(word, merge);
    // No occurrence is left, although a word like "aaa" counted it during the change.
    pairs_.erase(key);
    changed_.erase(key);
    for (const PairKey other : changed_) {
      const auto found = pairs_.find(other);
      if (found != pairs_.end()) push(other, found->second.count);
    }
  }

  void merge_in(int32_t word, const PairMerge& merge) {
    std::vector<int32_t>& symbols = words_[static_cast<size_t>(word)].symbols;
    const int64_t count = words_[static_cast<size_t>(word)].count;
    const auto has_pair = [&](size_t i) {
      return i + 1 < symbols.size() && symbols[i] == merge.left && symbols[i + 1] == merge.right;
    };
    size_t first = 0;
    while (first < symbols.size() && !has_pair(first)) ++first;
    if (first == symbols.size()) return;
    for (size_t i = 1; i < symbols.size(); ++i)
      add(key_of(symbols[i - 1], symbols[i]), -count, word);
    size_t to = first;
    for (size_t from = first; from < symbols.size(); ++to) {
      const bool here = has_pair(from);
      symbols[to] = here ? merge.result : symbols[from];
      from += here ? 2 : 1;
    }
    symbols.resize(to);
    for (size_t i = 1; i < symbols.size(); ++i)
      add(key_of(symbols[i - 1], symbols[i]), count, word);
  }

  std::vector<TrainingWord> words_;
  std::vector<std::string>& names_;
  const PairMergesOptions& options_;
  std::unordered_map<std::string, int32_t> by_name_;
  std::unordered_map<PairKey, Pair, KeyHash> pairs_;
  std::unordered_set<PairKey, KeyHash> changed_;  // pairs that a merge has made
  std::priority_queue<Candidate> heap_;
};

}  // namespace

std::vector<PairMerge> learn_merges(std::vector<TrainingWord> words,
                                    std::vector<std::string>& names,
                                    const PairMergesOptions& options) {
  return Learner(std::move(words), names, options).run();
}

}  // namespace heed
