// How much CPU time a container grants: the quota of this process's Linux control group (cgroup).
//
// A container limited to 2 CPUs on a machine of 64 still sees 64; starting that many threads would
// have them stopped by the kernel most of the time. Both versions of the interface are read:
// cpu.max (v2) and cpu.cfs_quota_us with cpu.cfs_period_us (v1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heed {

// CPUs' worth of time in the text of a cpu.max file ("150000 100000" is 1.5); nothing for "max",
// which means no limit, or for a text that is none.
std::optional<double> parse_cpu_max(std::string_view text);

// The same for the texts of cpu.cfs_quota_us (-1 means no limit) and cpu.cfs_period_us.
std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period);

// The least quota of the groups named in `membership`, the text of /proc/self/cgroup, and of all
// groups above them. `root` is where the groups' files are, /sys/fs/cgroup but in tests.
std::optional<double> cgroup_cpu_quota(std::string_view membership, const std::string& root);

}  // namespace heed
