#include "data/batches/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace heed {
namespace {

using testing::ElementsAre;

// Items of the lengths that a test gives.
class FakeItems final : public Items {
 public:
  explicit FakeItems(std::vector<int64_t> rows) : rows_(std::move(rows)) {}
  int64_t size() const override { return std::ssize(rows_); }
  int64_t rows(int64_t item, uint64_t /*pass*/) const override {
    return rows_[static_cast<size_t>(item)];
  }
  void append(int64_t, uint64_t, TrainingBatch&) const override {}

 private:
  std::vector<int64_t> rows_;
};

std::vector<int64_t> some_rows(int count, uint64_t seed) {
  Random random({.seed = seed});
  std::vector<int64_t> rows(static_cast<size_t>(count));
  for (int64_t& r : rows) r = 1 + static_cast<int64_t>(random.below(60));
  return rows;
}

struct Setting {
  explicit Setting(std::vector<std::vector<int64_t>> rows) {
    for (auto& r : rows) {
      items.push_back(std::make_unique<FakeItems>(std::move(r)));
      options.corpora.emplace_back();
    }
    options.batch_tokens = 200;
  }
  std::vector<PoolPlan> epoch(uint64_t number) const {
    const Planner planner(options, items);
    std::vector<PoolPlan> plans;
    for (uint64_t p = 0; p < planner.pools(); ++p) plans.push_back(planner.plan(number, p));
    return plans;
  }
  // Item numbers of corpus 0 in the order of training.
  std::vector<uint64_t> order(uint64_t number) const {
    std::vector<uint64_t> all;
    for (const PoolPlan& plan : epoch(number)) {
      for (const PlannedItem& item : plan.items) all.push_back(item.item);
    }
    return all;
  }
  StreamOptions options;
  std::vector<std::unique_ptr<Items>> items;
};

TEST(Plan, EveryEpochHasEachItemOnce) {
  Setting setting({some_rows(1000, 1)});
  setting.options.pool_examples = 300;
  for (const uint64_t epoch : {0, 1, 7}) {
    auto order = setting.order(epoch);
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
  }
  EXPECT_NE(setting.order(0), setting.order(1));
  EXPECT_EQ(setting.order(1), setting.order(1));
  Setting other({some_rows(1000, 1)});
  other.options.pool_examples = 300;
  other.options.seed = 2;
  EXPECT_NE(setting.order(0), other.order(0));
}

TEST(Plan, BatchesAreNearlyFullAndWithinTheBudget) {
  Setting setting({some_rows(1000, 2)});
  setting.options.pool_examples = 300;
  int64_t total = 0, batches = 0;
  for (const PoolPlan& plan : setting.epoch(0)) {
    for (uint64_t b = 0; b < plan.size(); ++b) {
      int64_t rows = 0;
      for (const PlannedItem& item : plan.batch(b)) rows += item.rows;
      EXPECT_LE(rows, 200);
      EXPECT_GE(rows, 100) << b;
      total += rows;
      ++batches;
    }
  }
  EXPECT_GT(static_cast<double>(total) / static_cast<double>(batches), 165);
}

TEST(Plan, BucketsByLength) {
  Setting setting({some_rows(2000, 3)});
  const auto spread = [&] {
    double sum = 0;
    int batches = 0;
    for (const PoolPlan& plan : setting.epoch(0)) {
      for (uint64_t b = 0; b < plan.size(); ++b, ++batches) {
        const auto batch = plan.batch(b);
        const auto [low, high] = std::minmax_element(
            batch.begin(), batch.end(),
            [](const PlannedItem& x, const PlannedItem& y) { return x.rows < y.rows; });
        sum += high->rows - low->rows;
      }
    }
    return sum / batches;
  };
  EXPECT_LT(spread(), 2);
  setting.options.group_by_length = false;
  EXPECT_GT(spread(), 20);
}

// Long and short batches are mixed.
TEST(Plan, BatchOrderIsIndependentOfLength) {
  Setting setting({some_rows(3000, 4)});
  double early = 0, late = 0;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    const PoolPlan plan = setting.epoch(epoch)[0];
    for (uint64_t b = 0; b < plan.size(); ++b) {
      (2 * b < plan.size() ? early : late) += plan.batch(b)[0].rows;
    }
  }
  EXPECT_NEAR(early / late, 1, 0.06);
}

TEST(Plan, KeepsTheOrderWhenNotShuffled) {
  Setting setting({some_rows(50, 5)});
  setting.options.shuffle = false;
  setting.options.pool_examples = 20;
  const auto order = setting.order(0);
  for (uint64_t i = 0; i < 50; ++i) ASSERT_EQ(order[i], i);
  EXPECT_EQ(setting.order(3), order);
}

TEST(Plan, LongItemsAreAlone) {
  Setting setting({{10, 500, 20}});
  setting.options.shuffle = false;
  const PoolPlan plan = setting.epoch(0)[0];
  EXPECT_THAT(plan.batches, ElementsAre(0, 1, 2, 3));
}

TEST(Plan, LimitsSentences) {
  Setting setting({std::vector<int64_t>(1200, 1)});
  setting.options.batch_sentences = 12;
  const PoolPlan plan = setting.epoch(0)[0];
  ASSERT_EQ(plan.size(), 100u);
  for (uint64_t b = 0; b < plan.size(); ++b) EXPECT_EQ(plan.batch(b).size(), 12u);
}

TEST(Shares, FollowSizeWeightAndTemperature) {
  const std::vector<int64_t> sizes{900, 100};
  const std::vector<double> even{1, 1};
  EXPECT_THAT(corpus_shares(sizes, even, 1), ElementsAre(900, 100));
  EXPECT_THAT(corpus_shares(sizes, even, 2), ElementsAre(750, 250));  // sqrt: 30 to 10
  EXPECT_THAT(corpus_shares(sizes, even, 1e9), ElementsAre(500, 500));
  EXPECT_THAT(corpus_shares(sizes, std::vector<double>{1, 9}, 1), ElementsAre(500, 500));
  EXPECT_THAT(corpus_shares(sizes, std::vector<double>{1, 0}, 1), ElementsAre(1000, 0));
}

TEST(Plan, SamplesCorporaByTheirShares) {
  Setting setting({some_rows(900, 6), some_rows(100, 7)});
  setting.options.temperature = 2;
  setting.options.pool_examples = 250;
  std::map<uint64_t, int> seen;  // of the small corpus, over two epochs: 250 items each
  for (const uint64_t epoch : {0, 1}) {
    const auto plans = setting.epoch(epoch);
    EXPECT_EQ(plans.size(), 4u);
    int small = 0, large = 0;
    std::set<uint64_t> large_items;
    for (const PoolPlan& plan : plans) {
      int in_pool = 0;
      for (const PlannedItem& item : plan.items) {
        (item.corpus == 0 ? large : small) += 1;
        in_pool += item.corpus == 1;
        if (item.corpus == 1) ++seen[item.item];
        if (item.corpus == 0) large_items.insert(item.item);
      }
      EXPECT_NEAR(in_pool, 62.5, 1);  // evenly over the epoch
    }
    EXPECT_EQ(large, 750);
    EXPECT_EQ(small, 250);
    // The second epoch continues with the remaining 150 and starts a new pass.
    EXPECT_EQ(large_items.size() == 750, epoch == 0);
  }
  // 500 of 100 items, in whole passes: each one five times.
  for (const auto& [item, count] : seen) EXPECT_EQ(count, 5) << item;
}

}  // namespace
}  // namespace heed
