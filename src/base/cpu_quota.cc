#include "base/cpu_quota.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>

namespace heed {

namespace {

// Removes the text up to `separator`, and the separator, from the front of `rest`; returns the text.
std::string_view take_until(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

// The content of a small file; empty when it is missing, which is expected here.
std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool lists_cpu(std::string_view controllers) {
  while (!controllers.empty())
    if (take_until(controllers, ',') == "cpu") return true;
  return false;
}

void lower_to(std::optional<double>& least, std::optional<double> quota) {
  if (quota && (!least || *quota < *least)) least = quota;
}

// Calls visit(directory) for the group `path` below `mount` and for each of its parents. A group of
// the host is not visible inside a container: its directory is missing there, and the container's
// limit is at the mount point.
template <class Visit>
void visit_upwards(const std::string& mount, std::string_view path, Visit visit) {
  // The kernel writes /.. for a group outside the namespace, which is not visible.
  if (path.find("..") != std::string_view::npos) path = {};
  for (;;) {
    while (!path.empty() && path.back() == '/') path.remove_suffix(1);
    visit(mount + std::string(path));
    if (path.empty()) return;
    path = path.substr(0, path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace

std::optional<double> parse_cpu_max(std::string_view text) {
  const std::string_view quota = take_until(text, ' ');
  return parse_cfs_quota(quota, text);  // "max" is not a number: no limit
}

std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period) {
  const std::optional<int64_t> quota_us = parse_integer(quota);
  const std::optional<int64_t> period_us = parse_integer(period);
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

std::optional<double> cgroup_cpu_quota(std::string_view membership, const std::string& root) {
  std::optional<double> least;
  const auto read_v1 = [&](const std::string& directory) {
    lower_to(least, parse_cfs_quota(read_text(directory + "/cpu.cfs_quota_us"),
                                    read_text(directory + "/cpu.cfs_period_us")));
  };
  const auto read_v2 = [&](const std::string& directory) {
    lower_to(least, parse_cpu_max(read_text(directory + "/cpu.max")));
  };
  // Each line is NUMBER:CONTROLLERS:PATH; version 2 lists no controllers. A machine may use both.
  while (!membership.empty()) {
    std::string_view path = take_until(membership, '\n');
    take_until(path, ':');
    const std::string_view controllers = take_until(path, ':');
    if (controllers.empty()) {
      visit_upwards(root, path, read_v2);
    } else if (lists_cpu(controllers)) {
      // Mounted under the full list of controllers, under "cpu", or (usually) linked as both.
      visit_upwards(root + "/" + std::string(controllers), path, read_v1);
      visit_upwards(root + "/cpu", path, read_v1);
    }
  }
  return least;
}

}  // namespace heed
