#include "data/batches/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "data/batches/permutation.h"

namespace heed {

namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The range of part `part` when [0, n) is divided into `parts`.
struct Part {
  uint64_t begin, end;
};
Part part_of(uint64_t n, uint64_t part, uint64_t parts) {
  // n * part could overflow: divide first.
  const uint64_t size = n / parts, rest = n % parts;
  const auto start = [&](uint64_t p) { return p * size + std::min(p, rest); };
  return {start(part), start(part + 1)};
}

RandomKey key_of(const StreamOptions& options, uint64_t epoch, uint32_t site) {
  return {.seed = options.seed, .step = static_cast<uint32_t>(epoch), .site = site};
}

}  // namespace

std::vector<uint64_t> corpus_shares(std::span<const int64_t> sizes, std::span<const double> weights,
                                    double temperature) {
  std::vector<double> parts;
  double total = 0, items = 0;
  for (size_t c = 0; c < sizes.size(); ++c) {
    parts.push_back(weights[c] * std::pow(static_cast<double>(sizes[c]), 1 / temperature));
    total += parts.back();
    items += static_cast<double>(sizes[c]);
  }
  std::vector<uint64_t> shares;
  for (const double part : parts) {
    const auto share = static_cast<uint64_t>(std::llround(items * (part / total)));
    shares.push_back(part > 0 ? std::max<uint64_t>(1, share) : 0);
  }
  return shares;
}

std::vector<uint64_t> cut_batches(std::span<const PlannedItem> items, int64_t tokens,
                                  int64_t sentences) {
  int64_t rows_left = 0;
  for (const PlannedItem& item : items) rows_left += item.rows;
  std::vector<uint64_t> ends;
  size_t begin = 0;
  while (begin < items.size()) {
    const auto items_left = static_cast<int64_t>(items.size() - begin);
    const int64_t batches_left = std::max(divide_up(rows_left, tokens),
                                          sentences > 0 ? divide_up(items_left, sentences) : 1);
    const int64_t target = divide_up(rows_left, batches_left);
    const int64_t most = sentences > 0 ? sentences : items_left;
    int64_t rows = items[begin].rows;
    size_t end = begin + 1;
    while (end < items.size() && static_cast<int64_t>(end - begin) < most) {
      const int64_t with_next = rows + items[end].rows;
      if (with_next > tokens) break;
      // Stop before the target size is exceeded, unless exceeding it is closer.
      if (with_next > target && with_next - target > target - rows) break;
      rows = with_next;
      ++end;
    }
    ends.push_back(end);
    rows_left -= rows;
    begin = end;
  }
  return ends;
}

Planner::Planner(const StreamOptions& options, std::span<const std::unique_ptr<Items>> items)
    : options_(options), items_(items) {
  std::vector<int64_t> sizes;
  std::vector<double> weights;
  for (size_t c = 0; c < items.size(); ++c) {
    HEED_CHECK(items[c]->size() > 0, "a corpus must not be empty");
    sizes.push_back(items[c]->size());
    weights.push_back(options.corpora[c].weight);
  }
  if (options.shuffle) {
    shares_ = corpus_shares(sizes, weights, options.temperature);
  } else {
    shares_.assign(sizes.begin(), sizes.end());  // every item once
  }
  const int64_t pool = std::max<int64_t>(1, options.pool_examples);
  pools_ = static_cast<uint64_t>(std::max<int64_t>(1, (epoch_items() + pool / 2) / pool));
}

int64_t Planner::epoch_items() const {
  return static_cast<int64_t>(std::accumulate(shares_.begin(), shares_.end(), uint64_t{0}));
}

std::vector<PlannedItem> Planner::pool_items(uint64_t epoch, uint64_t pool) const {
  std::vector<PlannedItem> planned;
  for (uint32_t c = 0; c < items_.size(); ++c) {
    const auto size = static_cast<uint64_t>(items_[c]->size());
    const Part part = part_of(shares_[c], pool, pools_);
    std::optional<Permutation> order;
    uint64_t order_pass = 0;
    for (uint64_t i = part.begin; i < part.end; ++i) {
      // Repeated passes over the corpus, continuing where the last epoch stopped.
      const uint64_t place = epoch * shares_[c] + i;
      PlannedItem item{.corpus = c, .rows = 0, .item = place % size, .pass = place / size};
      if (options_.shuffle) {
        if (!order || order_pass != item.pass) {
          order.emplace(size, key_of(options_, item.pass, kShuffleSite + c));
          order_pass = item.pass;
        }
        item.item = (*order)(item.item);
      }
      item.rows =
          static_cast<uint32_t>(items_[c]->rows(static_cast<int64_t>(item.item), item.pass));
      planned.push_back(item);
    }
  }
  return planned;
}

PoolPlan Planner::plan(uint64_t epoch, uint64_t pool) const {
  std::vector<PlannedItem> items = pool_items(epoch, pool);
  if (items.empty()) return {};
  const auto pool_site = [&](uint32_t site) { return site + static_cast<uint32_t>(pool); };
  if (options_.shuffle) {
    if (items_.size() > 1) {  // items of several corpora are still grouped by corpus
      const Permutation mix(items.size(), key_of(options_, epoch, pool_site(kPoolSite)));
      std::vector<PlannedItem> mixed(items.size());
      for (size_t i = 0; i < items.size(); ++i) mixed[i] = items[mix(i)];
      items = std::move(mixed);
    }
    if (options_.group_by_length) {
      std::stable_sort(items.begin(), items.end(),
                       [](const PlannedItem& a, const PlannedItem& b) { return a.rows < b.rows; });
    }
  }
  std::vector<uint64_t> ends = cut_batches(items, options_.batch_tokens, options_.batch_sentences);
  PoolPlan plan;
  if (!options_.shuffle) {
    plan.items = std::move(items);
    plan.batches.insert(plan.batches.end(), ends.begin(), ends.end());
    return plan;
  }
  plan.items.reserve(items.size());
  const Permutation order(ends.size(), key_of(options_, epoch, pool_site(kBatchSite)));
  for (size_t b = 0; b < ends.size(); ++b) {
    const uint64_t from = order(b);
    const auto begin = static_cast<ptrdiff_t>(from == 0 ? 0 : ends[from - 1]);
    plan.items.insert(plan.items.end(), items.begin() + begin,
                      items.begin() + static_cast<ptrdiff_t>(ends[from]));
    plan.batches.push_back(plan.items.size());
  }
  return plan;
}

}  // namespace heed
