// What the machine at hand can do at best, on a given number of threads.
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

// One limit, to be measured again and again between other things (bench/turns.h): its memory is
// taken and touched once.
class GemmLimit {
 public:
  explicit GemmLimit(ThreadPool& pool);
  // GFLOP/s of single products, repeated for `seconds`, twice at least.
  std::vector<double> sample(double seconds);

 private:
  std::vector<double> sample_size(int64_t size, double seconds);

  ThreadPool& pool_;
  Arena memory_;
  float *a_, *b_, *c_;
  int64_t best_size_ = 0;  // which size that is, is found out in the first sample
};

// Of reading the same `bytes` again and again, as steps read a model's weights: from memory, or
// from a cache that holds all of them or some, whichever the machine has for so many. Of more than
// 1 GB, 1 GB is read.
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

// Size of one core's L2 cache and of the last-level cache; a guess where the system does not say.
int64_t l2_cache_bytes();
int64_t last_cache_bytes();

// Of all arrays together that no cache should hold: four times the last-level cache, but no less
// than 256 MB and no more than 512 MB. Machines in a data centre say 260 MB and more, of which the
// cores of a small virtual machine share with many others; 1 GB and more would be zeroed and filled
// in each run, for seconds. Where such a cache is idle but for us, it may hold up to half of 512
// MB: reading then seems faster than memory is, and shares of it come out too low, never too high.
int64_t far_bytes(int64_t last_cache_bytes);
inline int64_t far_bytes() { return far_bytes(last_cache_bytes()); }

}  // namespace heed::bench
