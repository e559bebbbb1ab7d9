// What the machine at hand can do at best, on a given number of threads.
#pragma once

#include <cstdint>

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

// The best GEMM alone, and memory_read_gbs alone.
double measure_gemm_gflops(ThreadPool& pool, double seconds);
double measure_read_gbs(ThreadPool& pool, double seconds);

// Repeats each measurement for `seconds`, at least twice.
Limits measure_limits(ThreadPool& pool, double seconds);
Limits better_of(const Limits& a, const Limits& b);

// Size of one core's L2 cache and of the last-level cache; a guess where the system does not say.
int64_t l2_cache_bytes();
int64_t last_cache_bytes();

}  // namespace heed::bench
