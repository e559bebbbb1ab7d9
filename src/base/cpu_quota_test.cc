#include "base/cpu_quota.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace heed {
namespace {

TEST(CpuQuota, ReadsCpuMax) {
  EXPECT_EQ(parse_cpu_max("200000 100000\n"), 2.0);
  EXPECT_EQ(parse_cpu_max("150000 100000"), 1.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
}

TEST(CpuQuota, ReadsCfsQuota) {
  EXPECT_EQ(parse_cfs_quota("50000\n", "100000\n"), 0.5);
  EXPECT_EQ(parse_cfs_quota("400000", "100000"), 4.0);
  EXPECT_EQ(parse_cfs_quota("-1\n", "100000\n"), std::nullopt);
}

TEST(CpuQuota, MalformedTextIsNoLimit) {
  for (const char* text : {"", "\n", " ", "max", "100000", "100000 ", "100000 0", "0 100000",
                           "-5 1", "1 -5", "x y", "10x 10", "99999999999999999999 1", "1 2 3"})
    EXPECT_EQ(parse_cpu_max(text), std::nullopt) << '"' << text << '"';
  EXPECT_EQ(parse_cfs_quota("", ""), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("100", ""), std::nullopt);
}

// Control group files in a temporary folder.
class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() /
            ("heed_cpu_quota_test." + std::to_string(getpid()));
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << content;
  }
  std::optional<double> quota(const char* membership) const {
    return cgroup_cpu_quota(membership, root_.string());
  }

  std::filesystem::path root_;
};

TEST_F(CgroupTest, NoFilesNoLimit) {
  EXPECT_EQ(quota(""), std::nullopt);
  EXPECT_EQ(quota("0::/\n"), std::nullopt);
  EXPECT_EQ(quota("1:cpu,cpuacct:/a/b\n0::/a/b\n"), std::nullopt);
  EXPECT_EQ(quota("nonsense\n::\n:\n\n"), std::nullopt);
}

TEST_F(CgroupTest, Version2InsideAContainer) {
  write("cpu.max", "250000 100000\n");
  EXPECT_EQ(quota("0::/\n"), 2.5);
  EXPECT_EQ(quota("0::/../../other\n"), 2.5);
}

TEST_F(CgroupTest, Version2TakesTheMinimumOfAllParents) {
  write("a/cpu.max", "100000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  write("a/b/c/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota("0::/a/b/c\n"), 1.0);
  EXPECT_EQ(quota("0::/a\n"), 1.0);
  EXPECT_EQ(quota("0::/\n"), std::nullopt);
}

TEST_F(CgroupTest, Version1) {
  write("cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n");
  write("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("5:memory:/a\n4:cpu,cpuacct:/a\n0::/\n"), 3.0);
  EXPECT_EQ(quota("4:cpuset:/a\n"), std::nullopt);
}

TEST_F(CgroupTest, Version1WhenTheHostsPathIsNotVisible) {
  write("cpu/cpu.cfs_quota_us", "150000\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("4:cpu,cpuacct:/docker/0123456789abcdef\n"), 1.5);
}

}  // namespace
}  // namespace heed
