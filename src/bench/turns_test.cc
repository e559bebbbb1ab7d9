#include "bench/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "bench/limits.h"
#include "bench/read_pass.h"
#include "kernels/simd/each_target_testing.h"

namespace heed::bench {
namespace {

// The machine is half as fast from the middle on: batches and limit alike. The quotient of the two
// bests would do as well; that of any single pair taken at different times is off by two.
TEST(PairedShares, FollowAMachineThatBecomesSlower) {
  PairedShares shares;
  for (const double speed : {10.0, 10.0, 5.0, 5.0, 5.0}) {
    shares.add({8e9 / (speed * 1e9)}, {speed});
  }
  EXPECT_DOUBLE_EQ(shares.share(8e9), 1);  // the third turn, at the border, is an outlier
  EXPECT_DOUBLE_EQ(shares.best_limit(), 10);
}

// One pass in a quiet moment, between batches that never meet one.
TEST(PairedShares, AreNotMovedByOneLuckyPass) {
  PairedShares shares;
  for (int turn = 0; turn < 5; ++turn) {
    shares.add({1.0, 1.1, 0.9}, {10, turn == 2 ? 20.0 : 10, 10, 9, 11});
  }
  EXPECT_DOUBLE_EQ(shares.share(9e9), 0.9);
  EXPECT_DOUBLE_EQ(shares.best_limit(), 20);
}

TEST(InTurns, MeasuresTheLimitsAfterEachTurn) {
  for (const auto& [batch_seconds, turns] : {std::pair{0.0, 5}, {0.1, 3}}) {
    std::vector<char> calls;
    in_turns(
        0.01, batch_seconds, [&] { calls.push_back('b'); },
        [&](double seconds) {
          EXPECT_GT(seconds, 0);
          calls.push_back('l');
        });
    EXPECT_EQ(std::ranges::count(calls, 'l'), turns);
    EXPECT_EQ(calls.front(), 'b');
    EXPECT_EQ(calls.back(), 'l');
    for (size_t i = 1; i < calls.size(); ++i) EXPECT_FALSE(calls[i] == 'l' && calls[i - 1] == 'l');
  }
}

TEST(Limits, FarArraysAreNeitherSmallNorHuge) {
  constexpr int64_t kMega = 1 << 20;
  EXPECT_EQ(far_bytes(8 * kMega), 256 * kMega);
  EXPECT_EQ(far_bytes(96 * kMega), 384 * kMega);
  EXPECT_EQ(far_bytes(260 * kMega), 512 * kMega);
}

TEST(Limits, APassReadsEveryByte) {
  constexpr size_t kBytes = 3 * kReadPiece;
  Arena memory(kBytes);
  std::byte* bytes = memory.allocate<std::byte>(kBytes);
  kernels::for_each_target([&] {
    std::fill_n(bytes, kBytes, std::byte{0});
    EXPECT_EQ(read_pass(bytes, kBytes), 0u);
    // The first byte of each word of eight, all of which are added up.
    for (size_t i = 0; i < kBytes; i += 8) {
      bytes[i] = std::byte{1};
      EXPECT_EQ(read_pass(bytes, kBytes), i / 8 + 1);
    }
  });
}

TEST(Limits, CanBeSampledAgainAndAgain) {
  ThreadPool pool(1);
  GemmLimit gemm(pool);
  ReadLimit reading(pool, 1 << 20);
  for (int sample = 0; sample < 2; ++sample) {
    for (const std::vector<double>& speeds : {gemm.sample(0.001), reading.sample(0.001)}) {
      EXPECT_GE(speeds.size(), 2u);
      for (const double speed : speeds) EXPECT_GT(speed, 0);
    }
  }
}

}  // namespace
}  // namespace heed::bench
