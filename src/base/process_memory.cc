#include "base/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace heed {

int64_t current_rss_bytes() {
  std::ifstream file("/proc/self/statm");  // in pages: virtual size, resident, …
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

int64_t memory_limit_bytes() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  int64_t least = pages > 0 ? pages * sysconf(_SC_PAGESIZE) : 0;
  const auto lower_to = [&least](int64_t bytes) {
    if (bytes > 0 && (least == 0 || bytes < least)) least = bytes;
  };
  // Version 2 of control groups, as seen in a container, then version 1. "max" is not a number.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    int64_t bytes = 0;
    if (file >> bytes) lower_to(bytes);
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    lower_to(static_cast<int64_t>(
        std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int64_t>::max())));
  }
  return least;
}

}  // namespace heed
