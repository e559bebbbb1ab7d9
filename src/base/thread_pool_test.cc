#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/allocation_count_testing.h"
#include "heed/error.h"

namespace heed {
namespace {

using Range = std::pair<int64_t, int64_t>;
using Body = std::function<void(int64_t begin, int64_t end)>;

// The shares of a loop, in order.
std::vector<Range> shares_of(ThreadPool& pool, int64_t n, Grain grain) {
  std::mutex mutex;
  std::vector<Range> shares;
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard<std::mutex> lock(mutex);
    shares.emplace_back(begin, end);
  });
  std::sort(shares.begin(), shares.end());
  return shares;
}

class ThreadPoolTest : public testing::TestWithParam<int> {};

// 2 threads spin on a machine with as many CPUs; 9 exceed most machines and park at once.
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 9));

TEST_P(ThreadPoolTest, SharesCoverTheRangeEvenlyInWholeUnits) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (int64_t n : {1, 2, 7, 8, 9, 48, 63, 64, 65, 1000}) {
    for (int64_t least : {1, 2, 8, 22, 64, 5000}) {
      for (int64_t unit : {1, 2, 16, 128}) {
        SCOPED_TRACE("n = " + std::to_string(n) + ", least = " + std::to_string(least) +
                     ", unit = " + std::to_string(unit));
        const std::vector<Range> shares = shares_of(pool, n, {least, unit});
        const int64_t most = std::min((n + least - 1) / least, (n + unit - 1) / unit);
        EXPECT_EQ(shares.size(), std::min<size_t>(GetParam(), most));
        int64_t expected_begin = 0;
        int64_t smallest = n, largest = 0;
        for (const auto& [begin, end] : shares) {
          EXPECT_EQ(begin, expected_begin);
          EXPECT_LT(begin, end);
          if (end != n) {
            EXPECT_EQ(end % unit, 0);
          }
          const int64_t units = (end - begin + unit - 1) / unit;
          smallest = std::min(smallest, units);
          largest = std::max(largest, units);
          expected_begin = end;
        }
        EXPECT_EQ(expected_begin, n);
        EXPECT_LE(largest - smallest, 1);
      }
    }
  }
}

TEST_P(ThreadPoolTest, ManyJobsInARow) {
  ThreadPool pool(GetParam());
  std::vector<int> counts(1000);
  constexpr int kJobs = 2000;
  for (int job = 0; job < kJobs; ++job) {
    pool.parallel_for(1000, 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++counts[i];
    });
  }
  EXPECT_EQ(std::count(counts.begin(), counts.end(), kJobs), 1000);
}

TEST_P(ThreadPoolTest, WorkersWakeAfterTheyParked) {
  ThreadPool pool(GetParam());
  std::vector<int> counts(100);
  for (int job = 0; job < 20; ++job) {
    std::this_thread::sleep_for(std::chrono::microseconds(job % 2 == 0 ? 2000 : 50));
    pool.parallel_for(100, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++counts[i];
    });
  }
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 20), 100);
}

TEST_P(ThreadPoolTest, TheCallerSleepsUntilALongShareEnds) {
  ThreadPool pool(GetParam());
  std::atomic<int> done = 0;
  for (int job = 0; job < 3; ++job) {
    pool.parallel_for(pool.threads(), 1, [&](int64_t begin, int64_t end) {
      // The last share takes longest, so the caller must wait.
      std::this_thread::sleep_for(std::chrono::milliseconds(begin));
      done += static_cast<int>(end - begin);
    });
    EXPECT_EQ(done, (job + 1) * pool.threads());
  }
}

TEST_P(ThreadPoolTest, LoopInsideALoopRunsInline) {
  ThreadPool pool(GetParam()), other(2);
  std::atomic<int> inner_shares = 0, inner_sum = 0;
  pool.parallel_for(pool.threads(), 1, [&](int64_t, int64_t) {
    const std::thread::id outer = std::this_thread::get_id();
    for (ThreadPool* inner : {&pool, &other}) {
      if (pool.threads() == 1) return;  // not a share of several: inner loops may spread
      inner->parallel_for(100, 1, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        ++inner_shares;
        inner_sum += static_cast<int>(end - begin);
      });
    }
  });
  if (pool.threads() == 1) return;
  EXPECT_EQ(inner_shares, 2 * pool.threads());
  EXPECT_EQ(inner_sum, 200 * pool.threads());
}

TEST_P(ThreadPoolTest, SeveralCallersShareOnePool) {
  ThreadPool pool(GetParam());
  constexpr int kCallers = 4, kJobs = 300;
  std::vector<int64_t> sums(kCallers);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      std::vector<int64_t> values(200);
      for (int job = 0; job < kJobs; ++job) {
        pool.parallel_for(200, 7, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) values[i] += i;
        });
      }
      sums[caller] = std::accumulate(values.begin(), values.end(), int64_t{0});
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<int64_t>(kCallers, int64_t{kJobs} * 199 * 100));
}

TEST_P(ThreadPoolTest, TheExceptionOfTheLowestShareIsRethrown) {
  ThreadPool pool(GetParam());
  for (int64_t first_bad = 0; first_bad < pool.threads(); ++first_bad) {
    std::atomic<int> ran = 0;
    try {
      pool.parallel_for(pool.threads(), 1, [&](int64_t begin, int64_t) {
        ++ran;
        if (begin >= first_bad) throw std::runtime_error("share " + std::to_string(begin));
      });
      FAIL() << "did not throw";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "share " + std::to_string(first_bad));
    }
    EXPECT_EQ(ran, pool.threads());  // it was thrown after the join
    // The next job starts without it, and runs on all threads.
    EXPECT_EQ(shares_of(pool, 100, 1).size(), static_cast<size_t>(pool.threads()));
  }
}

TEST_P(ThreadPoolTest, RunningALoopAllocatesNothing) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> sum = 0;
  const int64_t before = allocations;
  for (int job = 0; job < 100; ++job)
    pool.parallel_for(64, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(sum, 6400);
}

TEST_P(ThreadPoolTest, CanBeDestroyedInAnyPhase) {
  for (int i = 0; i < 20; ++i) {
    ThreadPool pool(GetParam());
    for (int job = 0; job < i % 3; ++job) pool.parallel_for(100, 1, [](int64_t, int64_t) {});
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

TEST(ThreadPool, EmptyLoopsDoNothing) {
  ThreadPool pool(2);
  pool.parallel_for(0, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ThreadPool, ALoopOfOneGrainRunsOnTheCaller) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  pool.parallel_for(64, 64, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(Range(begin, end), Range(0, 64));
    // It used no worker, so a nested loop may.
    EXPECT_EQ(shares_of(pool, 2, 1).size(), 2u);
  });
}

TEST(ThreadPool, AcceptsAnyCallable) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum = 0;
  const auto constant = [&](int64_t begin, int64_t end) { sum += end - begin; };
  pool.parallel_for(10, 1, constant);
  Body function = constant;
  pool.parallel_for(10, 1, function);
  pool.parallel_for(10, 1, [&, calls = std::atomic<int>(0)](int64_t, int64_t) mutable {
    if (++calls == 1) sum += 10;
  });
  EXPECT_EQ(sum, 30);
}

TEST(ThreadPool, HugeRangesDoNotOverflow) {
  ThreadPool pool(3);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(shares_of(pool, kMost, 1).back().second, kMost);
  EXPECT_EQ(shares_of(pool, kMost, kMost / 2).back().second, kMost);
}

TEST(ThreadPool, MisuseIsReported) {
  EXPECT_THROW(ThreadPool(-1), Error);
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(-1, 1, [](int64_t, int64_t) {}), Error);
  EXPECT_THROW(pool.parallel_for(1, 0, [](int64_t, int64_t) {}), Error);
}

TEST(ThreadPool, TheDefaultIsAvailableCpus) {
  EXPECT_GE(available_cpus(), 1);
  EXPECT_LE(available_cpus(), static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_EQ(ThreadPool().threads(), available_cpus());
}

}  // namespace
}  // namespace heed
