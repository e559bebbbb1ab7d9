#include "base/process_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace heed {
namespace {

TEST(ProcessMemory, GrowsByWhatIsTouched) {
  constexpr int64_t kBytes = 64 << 20, kSlack = 8 << 20;
  const int64_t before = current_rss_bytes();
  EXPECT_GT(before, 0);
  const std::vector<char> block(kBytes, 'x');
  EXPECT_GE(current_rss_bytes(), before + kBytes - kSlack);
  EXPECT_GE(peak_rss_bytes(), before + kBytes - kSlack);
  EXPECT_EQ(block.back(), 'x');
}

TEST(ProcessMemory, HasALimit) {
  EXPECT_GT(memory_limit_bytes(), current_rss_bytes());
  EXPECT_LE(memory_limit_bytes(), int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE));
}

}  // namespace
}  // namespace heed
