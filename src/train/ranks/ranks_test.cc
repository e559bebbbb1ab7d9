#include "train/ranks/ranks.h"

#include <gmock/gmock.h>

#include <chrono>
#include <numeric>

#include "heed/error.h"
#include "train/ranks/ranks_testing.h"

namespace heed {
namespace {

using testing::HasSubstr;

TEST(Ranks, OneProcessKeepsItsNumbers) {
  Ranks ranks;
  std::vector<float> numbers{1, 2};
  std::string text = "text";
  ranks.begin_sum(numbers);
  ranks.finish_sums();
  ranks.broadcast(numbers);
  ranks.broadcast(text);
  ranks.barrier();
  EXPECT_EQ(ranks.sum(int64_t{7}), 7);
  EXPECT_EQ(ranks.broadcast(int64_t{8}), 8);
  EXPECT_THAT(numbers, testing::ElementsAre(1, 2));
  EXPECT_EQ(text, "text");
  EXPECT_TRUE(ranks.alone() && ranks.first());
}

TEST(Ranks, AddUpAndTellEachOther) {
  constexpr int kRanks = 3;
  constexpr size_t kMany = 2'500'001;  // more than one message takes
  RankHub hub(kRanks);
  run_ranks(hub, kRanks, [&](Ranks& ranks) {
    EXPECT_EQ(ranks.size(), kRanks);
    const int me = ranks.rank();
    EXPECT_EQ(ranks.first(), me == 0);
    std::vector<float> many(kMany, static_cast<float>(me + 1)), few{static_cast<float>(me)};
    ranks.begin_sum(many);
    ranks.begin_sum(few);
    ranks.begin_sum({});
    ranks.finish_sums();
    EXPECT_EQ(std::accumulate(many.begin(), many.end(), 0.0), 6.0 * kMany);
    EXPECT_THAT(few, testing::ElementsAre(3));
    std::vector<double> doubles{0.5, static_cast<double>(me)};
    ranks.sum(doubles);
    EXPECT_THAT(doubles, testing::ElementsAre(1.5, 3));
    EXPECT_EQ(ranks.sum((int64_t{1} << 40) + me), (int64_t{3} << 40) + 3);
    std::vector<float> told(kMany, static_cast<float>(me));
    ranks.broadcast(told);
    EXPECT_EQ(std::ranges::count(told, 0.0f), static_cast<int64_t>(kMany));
    std::string text(static_cast<size_t>(5 * me), 'x');
    if (me == 0) text = "the first rank's";
    ranks.broadcast(text);
    EXPECT_EQ(text, "the first rank's");
    text = me == 0 ? "" : "not empty";
    ranks.broadcast(text);
    EXPECT_EQ(text, "");
    EXPECT_EQ(ranks.broadcast(int64_t{me + 4}), 4);
  });
  EXPECT_EQ(hub.stopped(), kRanks);
}

TEST(Ranks, SumsProceedWhileNobodyWaits) {
  RankHub hub(2);
  run_ranks(hub, 2, [&](Ranks& ranks) {
    std::vector<float> numbers(100, 1);
    ranks.begin_sum(numbers);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (hub.completed() == 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(hub.completed(), 1);
    ranks.finish_sums();
    EXPECT_EQ(numbers[99], 2);
  });
}

TEST(Ranks, ALibrarysErrorIsThrownWhereItIsWaitedFor) {
  RankHub hub(1);
  RankCalls broken = *hub.calls(0);
  broken.sum_floats = [](void*, float*, int64_t, void**) { return 1; };
  Ranks ranks(&broken);
  std::vector<float> numbers(3);
  ranks.begin_sum(numbers);
  try {
    ranks.finish_sums();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the ranks' calls differ"));
    EXPECT_THAT(error.hint(), HasSubstr("mpirun"));
  }
  broken.start = [](void*, int*, int*) { return 1; };
  EXPECT_THROW(Ranks{&broken}, Error);
}

TEST(Ranks, WhoEndsInAnErrorDoesNotWaitForTheOthers) {
  RankHub hub(2);
  EXPECT_THROW(
      {
        Ranks ranks(hub.calls(0));
        std::vector<float> numbers(5);
        ranks.begin_sum(numbers);  // no other rank takes part
        throw Error(ErrorCode::cancelled, "a mistake");
      },
      Error);
  EXPECT_EQ(hub.stopped(), 0);
}

}  // namespace
}  // namespace heed
