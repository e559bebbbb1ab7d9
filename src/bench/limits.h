// The machine's limits on a given number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "base/thread_pool.h"

namespace heed::bench {

struct Limits {
  double gemm_gflops = 0;
  // Bytes read and bytes written a second, of arrays far beyond the caches.
  double memory_gbs = 0;         // from one array to another
  double memory_update_gbs = 0;  // in place
  double memory_read_gbs = 0;    // nothing written
  double l2_gbs = 0;             // from one to another within the L2 cache of each thread
};

// One limit that is sampled repeatedly between batches (bench/turns.h); its memory is allocated
// and touched once.
class GemmLimit {
 public:
  explicit GemmLimit(ThreadPool& pool);
  // GFLOP/s of single GEMMs, repeated for `seconds`, at least twice.
  std::vector<double> sample(double seconds);

 private:
  std::vector<double> sample_size(int64_t size, double seconds);

  ThreadPool& pool_;
  Arena memory_;
  float *a_, *b_, *c_;
  int64_t best_size_ = 0;  // chosen in the first sample
};

// Repeatedly reads the same `bytes`, as decode steps read the weights: from memory, or from a cache
// that holds some or all of them. At most 1 GB is read.
class ReadLimit {
 public:
  ReadLimit(ThreadPool& pool, int64_t bytes);
  // GB/s of single passes, likewise.
  std::vector<double> sample(double seconds);

 private:
  ThreadPool& pool_;
  int64_t share_bytes_;  // of each thread
  Arena memory_;
  std::byte* data_;
};

// Repeats each measurement for `seconds`, at least twice.
Limits measure_limits(ThreadPool& pool, double seconds);
Limits better_of(const Limits& a, const Limits& b);

// Size of one core's L2 cache and of the last-level cache; a guess where the system has no entry.
int64_t l2_cache_bytes();
int64_t last_cache_bytes();

// Total size of arrays that no cache should hold: four times the last-level cache, between 256 and
// 512 MB. Servers report 260 MB and more, shared among many virtual machines; filling 1 GB would
// take seconds in each run. If such a cache is otherwise idle, it may hold up to half of 512 MB:
// reading then seems faster than memory, and shares come out too low, never too high.
int64_t far_bytes(int64_t last_cache_bytes);
inline int64_t far_bytes() { return far_bytes(last_cache_bytes()); }

}  // namespace heed::bench
