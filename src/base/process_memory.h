// This process's resident set size (RSS), and the memory it may use.
#pragma once

#include <cstdint>

namespace heed {

int64_t current_rss_bytes();  // 0 where /proc is missing
int64_t peak_rss_bytes();

// The least of the machine's memory, the limit of the control group and `ulimit -v`; 0: unknown.
int64_t memory_limit_bytes();

}  // namespace heed
