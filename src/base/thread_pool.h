// The thread pool behind parallel_for; all kernels run on it.
//
// Workers spin briefly after a job, because the next one usually follows within microseconds, and
// then park. The caller works too, so a pool of n threads starts n - 1.
// Any number of threads may call parallel_for on one pool: while a job of another caller runs, the
// loop runs inline on the calling thread, as does a nested loop. A result must therefore never
// depend on how [0, n) was cut.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace heed {

// CPUs available to this process: its affinity mask, limited by the cgroup's CPU quota; at least 1.
int available_cpus();

// How a loop over [0, n) may be cut. A single number is `least`.
struct Grain {
  int64_t least = 1;  // iterations per thread that is woken; a share may have half as many
  int64_t unit = 1;   // share boundaries are multiples of it

  constexpr Grain(int64_t least_of_share, int64_t unit_of_borders = 1)
      : least(least_of_share), unit(unit_of_borders) {}
};

class ThreadPool {
 public:
  // threads = 0: available_cpus().
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls body(begin, end) on contiguous shares that cover [0, n), equal in length to within one unit,
  // at most one per thread; returns when all are done. An exception thrown by a share is rethrown
  // after the join (that of the lowest share, if several).
  // Allocates nothing.
  template <class Body>
  void parallel_for(int64_t n, Grain grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(n, grain, const_cast<void*>(static_cast<const void*>(&body)),
        [](void* context, int64_t begin, int64_t end) {
          (*static_cast<Plain*>(context))(begin, end);
        });
  }

 private:
  using Share = void (*)(void* context, int64_t begin, int64_t end);
  void run(int64_t n, Grain grain, void* context, Share share);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heed
