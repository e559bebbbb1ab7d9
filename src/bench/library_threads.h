// Threads of oneDNN when oneDNN itself is measured.
#pragma once

#include <omp.h>

namespace heed::bench {

// Lets oneDNN use OpenMP's threads, as many as our pool has, and restores the setting.
class LibraryThreads {
 public:
  explicit LibraryThreads(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~LibraryThreads() { omp_set_num_threads(before_); }
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int before_;
};

}  // namespace heed::bench
