// The CPU quota of this process's Linux control group (cgroup).
//
// A container limited to 2 CPUs on a machine with 64 still sees 64; with 64 threads the kernel
// would throttle them most of the time. Both versions of the interface are read:
// cpu.max (v2) and cpu.cfs_quota_us with cpu.cfs_period_us (v1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heed {

// The CPUs granted by the text of a cpu.max file ("150000 100000" is 1.5); none for "max", which
// means no limit, or for malformed text.
std::optional<double> parse_cpu_max(std::string_view text);

// The same for the texts of cpu.cfs_quota_us (-1 means no limit) and cpu.cfs_period_us.
std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period);

// The smallest quota of the groups named in `membership`, the text of /proc/self/cgroup, and of all
// their parents. `root` is the mount point of the groups, /sys/fs/cgroup except in tests.
std::optional<double> cgroup_cpu_quota(std::string_view membership, const std::string& root);

}  // namespace heed
