#include "train/report/run_facts.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/files/file_testing.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

class GitRevisionTest : public FolderTest {
 protected:
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    write(name, text);
  }
};

TEST(MachineFacts, NameTheMachineAndTheVersion) {
  const RunFacts facts = machine_facts(3);
  ASSERT_GE(facts.size(), 3U);
  EXPECT_EQ(facts[0].first, "machine");
  EXPECT_THAT(facts[0].second, testing::HasSubstr(" CPUs, "));
  EXPECT_EQ(facts[1].second, "3");
}

TEST_F(GitRevisionTest, IsTheCommitOfTheBranch) {
  put("a/.git/HEAD", "ref: refs/heads/main\n");
  put("a/.git/refs/heads/main", kCommit + "\n");
  fs::create_directories(path("a/b/c"));
  EXPECT_EQ(git_revision(path("a/b/c")), "0123456789ab (main)");
}

TEST_F(GitRevisionTest, IsAlsoFoundPackedDetachedAndInAWorkTree) {
  put("packed/.git/HEAD", "ref: refs/heads/x/y\n");
  put("packed/.git/packed-refs", "# pack-refs with: peeled\n" + kCommit + " refs/heads/x/y\n");
  EXPECT_EQ(git_revision(path("packed")), "0123456789ab (x/y)");
  put("detached/.git/HEAD", kCommit + "\n");
  EXPECT_EQ(git_revision(path("detached")), "0123456789ab");
  put("packed/.git/worktrees/w/HEAD", "ref: refs/heads/x/y\n");
  put("packed/.git/worktrees/w/commondir", "../..\n");
  put("work/.git", "gitdir: ../packed/.git/worktrees/w\n");
  EXPECT_EQ(git_revision(path("work")), "0123456789ab (x/y)");
}

TEST_F(GitRevisionTest, IsEmptyWithoutOne) {
  put("new/.git/HEAD", "ref: refs/heads/main\n");  // no commit yet
  EXPECT_EQ(git_revision(path("new")), "");
  put("odd/.git/HEAD", "nothing of the kind\n");
  EXPECT_EQ(git_revision(path("odd")), "");
  EXPECT_EQ(git_revision("/"), "");
}

}  // namespace
}  // namespace heed
