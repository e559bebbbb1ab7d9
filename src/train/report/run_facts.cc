#include "train/report/run_facts.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/text/number_text.h"
#include "heed/version.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRefs = 100'000;  // lines of packed-refs

// The first line, without its end. Empty if the file cannot be read.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

std::string after(const std::string& line, const std::string& start) {
  return line.starts_with(start) ? line.substr(start.size()) : "";
}

// The value of the first "name : value" of a /proc file.
std::string proc_value(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

// The folder with HEAD; a work tree has a file that names it.
fs::path git_folder(fs::path folder) {
  for (;; folder = folder.parent_path()) {
    const fs::path git = folder / ".git";
    std::error_code failed;
    if (fs::is_directory(git, failed)) return git;
    const std::string other = after(first_line(git), "gitdir: ");
    if (!other.empty()) return folder / other;
    if (folder == folder.parent_path()) return {};
  }
}

std::string commit_of(const fs::path& git, const std::string& ref) {
  std::string commit = first_line(git / ref);
  if (!commit.empty()) return commit;
  std::ifstream packed(git / "packed-refs");
  std::string line;
  for (size_t i = 0; i < kMostRefs && std::getline(packed, line); ++i) {
    if (line.ends_with(" " + ref)) return line.substr(0, line.find(' '));
  }
  return {};
}

}  // namespace

RunFacts machine_facts(int threads) {
  RunFacts facts;
  std::string cpu = proc_value("/proc/cpuinfo", "model name");
  if (cpu.empty()) cpu = "CPU";
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const unsigned cpus = std::thread::hardware_concurrency();
  facts.emplace_back("machine", cpu + ", " + std::to_string(cpus) + " CPUs, " +
                                    fixed(memory / 1e9, 1) + " GB of memory");
  facts.emplace_back("threads", std::to_string(threads));
  utsname system{};
  if (::uname(&system) == 0) {
    facts.emplace_back("system",
                       std::string(system.sysname) + " " + system.release + ", " + system.machine);
  }
  facts.emplace_back("Heed", version());
  return facts;
}

std::string git_revision(const std::string& folder) {
  std::error_code failed;
  const fs::path git = git_folder(fs::absolute(folder, failed));
  if (failed || git.empty()) return {};
  const std::string head = first_line(git / "HEAD"), ref = after(head, "ref: ");
  std::string commit = head;
  if (!ref.empty()) {
    commit = commit_of(git, ref);
    const std::string shared = first_line(git / "commondir");  // of a linked work tree
    if (commit.empty() && !shared.empty()) commit = commit_of(git / shared, ref);
  }
  constexpr size_t kShown = 12;
  const auto is_hex = [](unsigned char c) { return std::isxdigit(c) != 0; };
  if (commit.size() < kShown || !std::ranges::all_of(commit, is_hex)) return {};
  const std::string branch = after(ref, "refs/heads/");
  return commit.substr(0, kShown) + (branch.empty() ? "" : " (" + branch + ")");
}

}  // namespace heed
