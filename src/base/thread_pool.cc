#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/cpu_quota.h"

namespace heed {

namespace {

// How long a worker spins for its next job before it parks. Within a step the next job follows in a
// few microseconds, between two decode steps of a beam search in 60 to 100; waking a parked thread
// costs 5 to 50 us.
constexpr std::chrono::microseconds kIdleSpin{200};

// How long the caller spins for its workers. Shares are equal, so the wait is short.
constexpr std::chrono::microseconds kJoinSpin{200};

// Time between two yields of a spinning thread. Long enough that most waits end without one: a yield
// costs a microsecond, can lose the CPU for milliseconds on a busy machine, and keeps two threads
// that were woken on one CPU there, where spinning makes the kernel separate them.
constexpr std::chrono::microseconds kYieldInterval{20};

// Polls between two reads of the clock, one of which costs as much as several polls: about 1.5 us.
constexpr int kPollsPerClockRead = 32;

// Two cache lines, because processors prefetch lines in pairs.
constexpr size_t kNoFalseSharing = 128;

// Spin-wait hint: saves power, and leaves the core's resources to its other hyperthread.
void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() holds or `patience` is over; returns done().
//
// Yields now and then: on a busy machine the awaited thread may be queued on the CPU of the spinning
// one. Measured with 2 CPUs and four other busy processes, the mean of 2,000 loops whose shares take
// 5 us: 22 us, 290 without yields, and 1,420 with a yield at every read of the clock.
template <class Done>
bool spin_until(Done done, std::chrono::microseconds patience) {
  if (done()) return true;
  if (patience.count() == 0) return false;
  Clock::time_point now = Clock::now();
  const Clock::time_point deadline = now + patience;
  for (Clock::time_point last_yield = now; now < deadline; now = Clock::now()) {
    for (int poll = 0; poll < kPollsPerClockRead; ++poll) {
      pause_cpu();
      if (done()) return true;
    }
    if (now - last_yield < kYieldInterval) continue;
    std::this_thread::yield();
    last_yield = Clock::now();
  }
  return false;
}

// True on a thread while it runs a share of any pool's job: a nested loop then runs inline.
thread_local bool inside_share = false;

int cpus_in_affinity_mask() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // over 1024 CPUs, or unknown
}

std::string read_membership() {
  std::ifstream file("/proc/self/cgroup");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// [0, n) cut into runs of whole units whose lengths differ by at most one unit. The longer ones are
// first: share 0 is the caller's, which starts first.
class Cut {
 public:
  Cut(int64_t n, Grain grain, int threads)
      : n_(n),
        unit_(grain.unit),
        units_((n - 1) / grain.unit + 1),
        shares_(static_cast<int>(std::min<int64_t>({threads, units_, (n - 1) / grain.least + 1}))) {
  }

  int shares() const { return shares_; }
  int64_t begin(int share) const {
    if (share == shares_) return n_;
    return (share * (units_ / shares_) + std::min<int64_t>(share, units_ % shares_)) * unit_;
  }

 private:
  int64_t n_, unit_, units_;
  int shares_;
};

// The hand-over between the caller and one worker. Both sides poll `phase` only; it also says which
// side may access the other members:
//
//   idle     the worker spins                   → running, parked, stopping
//   parked   the worker sleeps                  → running, stopping
//   running  the worker runs its share          → idle, awaited
//   awaited  the same, while the caller sleeps  → idle
//
// A side announces its sleep with a compare-exchange, and the exchange that ends the phase returns
// it to the other side: no wake-up is lost, and none is sent without a sleeper.
struct alignas(kNoFalseSharing) Slot {
  enum Phase : int { idle, parked, running, awaited, stopping };

  std::atomic<int> phase{idle};
  void (*share)(void* context, int64_t begin, int64_t end) = nullptr;
  void* context = nullptr;
  int64_t begin = 0, end = 0;
  std::exception_ptr error;

  alignas(kNoFalseSharing) std::mutex mutex;  // only to sleep and to wake
  std::condition_variable changed;

  // Starts the next phase, and wakes the other side if it sleeps in `asleep`.
  void advance(Phase next, Phase asleep) {
    if (phase.exchange(next, std::memory_order_acq_rel) != asleep) return;
    // The sleeper holds the mutex or already waits: locking it once ensures that it waits, otherwise
    // the notification could be lost.
    { const std::lock_guard<std::mutex> wait_for_sleeper(mutex); }
    changed.notify_one();
  }

  // Returns when the phase is no longer `current`: spins, then sleeps in phase `asleep`.
  void wait_while(Phase current, Phase asleep, std::chrono::microseconds patience) {
    const auto over = [&] { return phase.load(std::memory_order_acquire) != current; };
    if (spin_until(over, patience)) return;
    int expected = current;
    if (!phase.compare_exchange_strong(expected, asleep, std::memory_order_acq_rel)) return;
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return phase.load(std::memory_order_acquire) != asleep; });
  }

  // The worker's loop.
  void work(std::chrono::microseconds patience) {
    inside_share = true;
    for (;;) {
      wait_while(idle, parked, patience);
      if (phase.load(std::memory_order_acquire) == stopping) return;
      try {
        share(context, begin, end);
      } catch (...) {
        error = std::current_exception();
      }
      advance(idle, awaited);
    }
  }
};

}  // namespace

int available_cpus() {
  int cpus = cpus_in_affinity_mask();
  const std::optional<double> quota = cgroup_cpu_quota(read_membership(), "/sys/fs/cgroup");
  // Rounded to nearest: a quota of 1.9 would waste almost half if cut to 1, and two threads with a
  // quota of 1.2 would be throttled almost half of the time.
  if (quota && *quota < cpus) cpus = static_cast<int>(std::lround(*quota));
  return std::max(cpus, 1);
}

struct ThreadPool::State {
  explicit State(int thread_count) : threads(thread_count), slots(thread_count - 1) {
    // With more threads than CPUs, a spinning thread takes the CPU of the thread it waits for.
    const bool crowded = threads > available_cpus();
    const auto idle_spin = crowded ? kIdleSpin * 0 : kIdleSpin;
    join_spin = crowded ? kJoinSpin * 0 : kJoinSpin;
    workers.reserve(slots.size());
    try {
      for (Slot& slot : slots) workers.emplace_back([&slot, idle_spin] { slot.work(idle_spin); });
    } catch (const std::exception& error) {
      stop();
      throw Error(ErrorCode::out_of_memory,
                  "cannot start " + std::to_string(threads) + " threads, only " +
                      std::to_string(workers.size() + 1) + ": " + error.what(),
                  "use fewer threads");
    }
  }
  ~State() { stop(); }

  void stop() {
    for (size_t i = 0; i < workers.size(); ++i) slots[i].advance(Slot::stopping, Slot::parked);
    for (std::thread& worker : workers)
      if (worker.joinable()) worker.join();
  }

  const int threads;
  std::chrono::microseconds join_spin{0};
  std::vector<Slot> slots;  // worker i has share i + 1
  std::vector<std::thread> workers;
  alignas(kNoFalseSharing) std::atomic<bool> taken{false};  // a caller's job is running
};

ThreadPool::ThreadPool(int threads) {
  if (threads < 0) {
    throw Error(ErrorCode::invalid_argument,
                "threads must be 0 or more, got " + std::to_string(threads),
                "0 uses every CPU available to this process");
  }
  constexpr int kMostThreads = 4096;  // above any machine: a typo
  if (threads > kMostThreads) {
    throw Error(ErrorCode::invalid_argument,
                "threads must be at most " + std::to_string(kMostThreads) + ", got " +
                    std::to_string(threads),
                "0 uses every CPU available to this process");
  }
  state_ = std::make_unique<State>(threads > 0 ? threads : available_cpus());
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::run(int64_t n, Grain grain, void* context, Share share) {
  HEED_CHECK(n >= 0 && grain.least >= 1 && grain.unit >= 1,
             "parallel_for: n must be at least 0, and grain at least 1");
  if (n == 0) return;
  State& state = *state_;
  const Cut cut(n, grain, state.threads);
  if (cut.shares() == 1 || inside_share || state.taken.exchange(true, std::memory_order_acquire)) {
    share(context, 0, n);
    return;
  }

  for (int i = 1; i < cut.shares(); ++i) {
    Slot& slot = state.slots[i - 1];
    slot.share = share;
    slot.context = context;
    slot.begin = cut.begin(i);
    slot.end = cut.begin(i + 1);
    slot.advance(Slot::running, Slot::parked);
  }

  std::exception_ptr error;
  inside_share = true;
  try {
    share(context, cut.begin(0), cut.begin(1));
  } catch (...) {
    error = std::current_exception();
  }
  inside_share = false;

  for (int i = 1; i < cut.shares(); ++i) {
    Slot& slot = state.slots[i - 1];
    slot.wait_while(Slot::running, Slot::awaited, state.join_spin);
    // Cleared even when a lower share failed too: it must not reach the next job.
    const std::exception_ptr later = std::exchange(slot.error, nullptr);
    if (!error) error = later;
  }
  state.taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

}  // namespace heed
