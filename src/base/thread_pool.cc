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

// A worker watches for its next job this long before it parks. Within a step the next job follows
// in a few microseconds, from one step of a beam to the next in 60 to 100; waking a parked thread
// costs 5 to 50 of them.
constexpr std::chrono::microseconds kIdleSpin{200};

// The caller watches as long for its workers: it has nothing else to do, and it waits only for the
// difference between two equal shares.
constexpr std::chrono::microseconds kJoinSpin{200};

// Between two offers of a waiting thread's CPU to others. Long enough that most waits end without
// one: an offer costs a microsecond, lets a busy machine take the CPU away for milliseconds, and
// keeps two threads that were woken on one CPU content with it, where spinning parts them.
constexpr std::chrono::microseconds kBetweenOffers{20};

// Looks between two glances at the clock, which costs as much as several looks: about 1.5 us.
constexpr int kLooksPerGlance = 32;

// Two lines, because processors fetch lines in pairs.
constexpr size_t kNoSharing = 128;

// Tells the processor that this thread only waits: saves power, and leaves a core's other
// hyperthread its share.
void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Watches until done() holds or `patience` is over; returns done().
//
// Now and then it offers its CPU to others: on a busy machine the kernel may have put the thread we
// wait for on our own CPU, behind us. Measured with 2 CPUs and four other processes at work, the
// mean of 2,000 loops whose shares take 5 us: 22 us, 290 without offers, and 1,420 with one in
// every glance.
template <class Done>
bool spin_until(Done done, std::chrono::microseconds patience) {
  if (done()) return true;
  if (patience.count() == 0) return false;
  Clock::time_point now = Clock::now();
  const Clock::time_point deadline = now + patience;
  for (Clock::time_point last_offer = now; now < deadline; now = Clock::now()) {
    for (int look = 0; look < kLooksPerGlance; ++look) {
      pause_cpu();
      if (done()) return true;
    }
    if (now - last_offer < kBetweenOffers) continue;
    std::this_thread::yield();
    last_offer = Clock::now();
  }
  return false;
}

// True on a thread while it runs a share of some pool's job: a loop it meets then runs inline.
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

// [0, n) cut into runs of whole units whose lengths differ by one unit at most. The longer ones
// come first: share 0 is the caller's, which starts soonest.
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

// Where one worker gets its shares from. `phase` says whose turn it is and is the only thing that
// either side watches; the other members belong to whom it says:
//
//   idle     the worker waits, spinning         → running, parked, stopping
//   parked   the worker waits, asleep           → running, stopping
//   running  the worker works                   → idle, awaited
//   awaited  the worker works, the caller sleeps → idle
//
// A side goes to sleep by announcing it with a compare-exchange, and the other learns of the
// sleeper from the exchange that ends the phase: no wake-up is lost, and none is sent for nothing.
struct alignas(kNoSharing) Desk {
  enum Phase : int { idle, parked, running, awaited, stopping };

  std::atomic<int> phase{idle};
  void (*share)(void* context, int64_t begin, int64_t end) = nullptr;
  void* context = nullptr;
  int64_t begin = 0, end = 0;
  std::exception_ptr error;

  alignas(kNoSharing) std::mutex mutex;  // only to sleep and to wake
  std::condition_variable changed;

  // Starts the next phase, and wakes the other side if it sleeps in `asleep`.
  void advance(Phase next, Phase asleep) {
    if (phase.exchange(next, std::memory_order_acq_rel) != asleep) return;
    // The sleeper has read the old phase and holds the mutex, or waits already: taking the mutex
    // once makes sure of the second, or the notification could come too early.
    { const std::lock_guard<std::mutex> wait_for_sleeper(mutex); }
    changed.notify_one();
  }

  // Returns when the phase is no longer `current`: spins, then sleeps under the name `asleep`.
  void wait_while(Phase current, Phase asleep, std::chrono::microseconds patience) {
    const auto over = [&] { return phase.load(std::memory_order_acquire) != current; };
    if (spin_until(over, patience)) return;
    int expected = current;
    if (!phase.compare_exchange_strong(expected, asleep, std::memory_order_acq_rel)) return;
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return phase.load(std::memory_order_acquire) != asleep; });
  }

  // The worker's life.
  void work(std::chrono::microseconds patience) {
    inside_share = true;  // whatever a worker runs is a share
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
  // To the nearest: a quota of 1.9 would waste almost half if cut to 1, and two threads on one
  // of 1.2 would be stopped for almost half of the time.
  if (quota && *quota < cpus) cpus = static_cast<int>(std::lround(*quota));
  return std::max(cpus, 1);
}

struct ThreadPool::State {
  explicit State(int thread_count) : threads(thread_count), desks(thread_count - 1) {
    // With more threads than CPUs, one that spins keeps from working the one that it waits for.
    const bool crowded = threads > available_cpus();
    const auto idle_spin = crowded ? kIdleSpin * 0 : kIdleSpin;
    join_spin = crowded ? kJoinSpin * 0 : kJoinSpin;
    workers.reserve(desks.size());
    try {
      for (Desk& desk : desks) workers.emplace_back([&desk, idle_spin] { desk.work(idle_spin); });
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
    for (size_t i = 0; i < workers.size(); ++i) desks[i].advance(Desk::stopping, Desk::parked);
    for (std::thread& worker : workers)
      if (worker.joinable()) worker.join();
  }

  const int threads;
  std::chrono::microseconds join_spin{0};
  std::vector<Desk> desks;  // of workers, which take the shares 1, 2, …
  std::vector<std::thread> workers;
  alignas(kNoSharing) std::atomic<bool> taken{false};  // by a caller whose job runs
};

ThreadPool::ThreadPool(int threads) {
  if (threads < 0) {
    throw Error(ErrorCode::invalid_argument,
                "the number of threads is " + std::to_string(threads) + ", expected 0 or more",
                "0 means every CPU that this process may use");
  }
  constexpr int kMostThreads = 4096;  // beyond any machine; a typing mistake, not a wish
  if (threads > kMostThreads) {
    throw Error(ErrorCode::invalid_argument,
                "the number of threads is " + std::to_string(threads) + ", expected at most " +
                    std::to_string(kMostThreads),
                "0 means every CPU that this process may use");
  }
  state_ = std::make_unique<State>(threads > 0 ? threads : available_cpus());
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::run(int64_t n, Grain grain, void* context, Share share) {
  HEED_CHECK(n >= 0 && grain.least >= 1 && grain.unit >= 1, "a loop needs n >= 0 and grain >= 1");
  if (n == 0) return;
  State& state = *state_;
  const Cut cut(n, grain, state.threads);
  if (cut.shares() == 1 || inside_share || state.taken.exchange(true, std::memory_order_acquire)) {
    share(context, 0, n);
    return;
  }

  for (int i = 1; i < cut.shares(); ++i) {
    Desk& desk = state.desks[i - 1];
    desk.share = share;
    desk.context = context;
    desk.begin = cut.begin(i);
    desk.end = cut.begin(i + 1);
    desk.advance(Desk::running, Desk::parked);
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
    Desk& desk = state.desks[i - 1];
    desk.wait_while(Desk::running, Desk::awaited, state.join_spin);
    // Emptied even when a lower share failed too: the next job must not find it.
    const std::exception_ptr later = std::exchange(desk.error, nullptr);
    if (!error) error = later;
  }
  state.taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

}  // namespace heed
