#include "base/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

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

}  // namespace heed
