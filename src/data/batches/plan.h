// Plans batches with length bucketing, one pool of an epoch at a time.
//
// Every epoch takes a fixed number of items from each corpus, in the order of a permutation. The
// epoch is divided into pools of about the same size; a pool's items are sorted by length and cut
// into batches of nearly the same size, whose order is shuffled. A pool is a random sample of the
// epoch, so shuffling batches across pools would gain nothing, and only one pool's plan is in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/objectives/items.h"
#include "data/options.h"

namespace heed {

struct PlannedItem {
  uint32_t corpus = 0;
  uint32_t rows = 0;
  uint64_t item = 0;
  uint64_t pass = 0;  // of its corpus
};

struct PoolPlan {
  std::vector<PlannedItem> items;    // in batch order
  std::vector<uint64_t> batches{0};  // batch b is items [b] … [b + 1) - 1

  uint64_t size() const { return batches.size() - 1; }
  std::span<const PlannedItem> batch(uint64_t b) const {
    return std::span(items).subspan(batches[b], batches[b + 1] - batches[b]);
  }
};

class Planner {
 public:
  // Keeps references to both. items[c] belong to options.corpora[c]; none is empty.
  Planner(const StreamOptions& options, std::span<const std::unique_ptr<Items>> items);

  uint64_t pools() const { return pools_; }  // of an epoch
  int64_t epoch_items() const;
  PoolPlan plan(uint64_t epoch, uint64_t pool) const;

 private:
  std::vector<PlannedItem> pool_items(uint64_t epoch, uint64_t pool) const;

  const StreamOptions& options_;
  std::span<const std::unique_ptr<Items>> items_;
  std::vector<uint64_t> shares_;  // items per epoch from each corpus
  uint64_t pools_ = 1;
};

// The items per epoch of each corpus, in proportion to weight * size^(1 / temperature); their sum is
// the total size.
std::vector<uint64_t> corpus_shares(std::span<const int64_t> sizes, std::span<const double> weights,
                                    double temperature);

// Cuts items into batches of at most `tokens` rows and `sentences` items (0: no limit); returns the
// ends of the batches. Batches are about equally large instead of full with a small last one, whose
// sentences would get a larger weight in training.
std::vector<uint64_t> cut_batches(std::span<const PlannedItem> items, int64_t tokens,
                                  int64_t sentences);

}  // namespace heed
