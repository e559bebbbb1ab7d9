#include "train/run/folder_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "base/files/file_testing.h"

namespace heed {
namespace {

class FolderLockTest : public FolderTest {};

TEST_F(FolderLockTest, IsHeldByOneAtATime) {
  std::optional<FolderLock> first(folder_);
  expect_error(ErrorCode::invalid_argument, "another training is writing there",
               [&] { FolderLock second(folder_); });
  first.reset();
  FolderLock third(folder_);
}

TEST_F(FolderLockTest, GoesWithAProcessThatIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock lock(folder_);
    if (::write(ready[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_THROW(FolderLock lock(folder_), Error);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_NO_THROW(FolderLock lock(folder_));
  close(ready[0]), close(ready[1]);
}

TEST_F(FolderLockTest, SaysWhenTheFolderCannotBeWritten) {
  expect_error(ErrorCode::invalid_argument, "absent", [&] { FolderLock lock(path("absent")); });
}

}  // namespace
}  // namespace heed
