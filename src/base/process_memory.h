// This process's resident set size (RSS).
#pragma once

#include <cstdint>

namespace heed {

int64_t current_rss_bytes();  // 0 where /proc is missing
int64_t peak_rss_bytes();

}  // namespace heed
