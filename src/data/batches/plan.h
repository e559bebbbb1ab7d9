// Which items make which batches: one pool of an epoch at a time.
//
// Every epoch takes a fixed number of items from each corpus, in the order of a permutation of it.
// An epoch's items are dealt into pools of about the same size; a pool's are mixed, sorted by
// length and cut into batches of nearly the same size, whose order is then shuffled. A pool is a
// random sample of the epoch, so nothing is gained by shuffling batches further apart, and a pool's
// plan is all that has to be in memory.
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
  std::vector<PlannedItem> items;    // in the order of batches
  std::vector<uint64_t> batches{0};  // batch b is items [b] … [b + 1) - 1

  uint64_t size() const { return batches.size() - 1; }
  std::span<const PlannedItem> batch(uint64_t b) const {
    return std::span(items).subspan(batches[b], batches[b + 1] - batches[b]);
  }
};

class Planner {
 public:
  // Borrows both. items[c] are those of options.corpora[c]; none of them is empty.
  Planner(const StreamOptions& options, std::span<const std::unique_ptr<Items>> items);

  uint64_t pools() const { return pools_; }  // of an epoch
  int64_t epoch_items() const;
  PoolPlan plan(uint64_t epoch, uint64_t pool) const;

 private:
  std::vector<PlannedItem> pool_items(uint64_t epoch, uint64_t pool) const;

  const StreamOptions& options_;
  std::span<const std::unique_ptr<Items>> items_;
  std::vector<uint64_t> shares_;  // items an epoch takes from each corpus
  uint64_t pools_ = 1;
};

// How many items each of several corpora gives to an epoch that has as many as all together: in
// proportion to weight * size^(1 / temperature).
std::vector<uint64_t> corpus_shares(std::span<const int64_t> sizes, std::span<const double> weights,
                                    double temperature);

// Where to cut items with these rows into batches of at most `tokens` rows and `sentences` items
// (0: any number): ends of the batches. Batches are made about equally large rather than full with
// a small one at the end, which would give its sentences a larger part in training than the others.
std::vector<uint64_t> cut_batches(std::span<const PlannedItem> items, int64_t tokens,
                                  int64_t sentences);

}  // namespace heed
