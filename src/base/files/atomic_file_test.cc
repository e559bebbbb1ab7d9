#include "base/files/atomic_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <thread>
#include <utility>

#include "base/files/file_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;

using AtomicFileTest = FolderTest;

TEST_F(AtomicFileTest, AppearsWhenCommitted) {
  AtomicFile file(path("a"));
  file.write("one ");
  AtomicFile same(std::move(file));
  same.write("two");
  EXPECT_FALSE(std::filesystem::exists(path("a")));
  same.commit();
  EXPECT_EQ(read_text(path("a")), "one two");
  EXPECT_THAT(file_names(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, ReplacesAsAWhole) {
  write("a", "old");
  {
    AtomicFile file(path("a"));
    file.write("new");
    EXPECT_EQ(read_text(path("a")), "old");
  }  // not committed
  EXPECT_EQ(read_text(path("a")), "old");
  EXPECT_THAT(file_names(), ElementsAre("a"));
  AtomicFile file(path("a"));
  file.write("new");
  file.commit();
  EXPECT_EQ(read_text(path("a")), "new");
}

TEST_F(AtomicFileTest, RemovesThePartialFileOfAKilledWriter) {
  write("a.partial", "half of someth");
  AtomicFile file(path("a"));
  file.write("all");
  file.commit();
  EXPECT_EQ(read_text(path("a")), "all");
  EXPECT_THAT(file_names(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, DoesNotFollowASymbolicLink) {
  write("victim", "precious");
  std::filesystem::create_symlink(path("victim"), path("a.partial"));
  AtomicFile file(path("a"));
  file.write("all");
  file.commit();
  EXPECT_EQ(read_text(path("victim")), "precious");
}

// What the user names with --out stays the kind of file that it is.
TEST_F(AtomicFileTest, WritesThroughAPipe) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = read_text(path("pipe")); });
  write_output_file(path("pipe"), "through");
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
  EXPECT_THAT(file_names(), ElementsAre("pipe"));
}

TEST_F(AtomicFileTest, WritesThroughALinkToADevice) {
  std::filesystem::create_symlink("/dev/null", path("null"));
  write_output_file(path("null"), "nothing");
  EXPECT_TRUE(std::filesystem::is_symlink(path("null")));
  EXPECT_THAT(file_names(), ElementsAre("null"));
  std::filesystem::create_symlink("/dev/full", path("full"));
  expect_error(ErrorCode::out_of_memory, "full: cannot be written: No space left on device",
               [&] { write_output_file(path("full"), "nothing"); });
  EXPECT_TRUE(std::filesystem::is_symlink(path("full")));
}

TEST_F(AtomicFileTest, ReplacesTheTargetOfALink) {
  std::filesystem::create_directory(path("there"));
  write("there/target", "old");
  std::filesystem::create_symlink("there/target", path("link"));
  std::filesystem::create_symlink(path("link"), path("link2"));
  write_output_file(path("link2"), "new");
  EXPECT_EQ(read_text(path("there/target")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_TRUE(std::filesystem::is_symlink(path("link2")));
  std::filesystem::create_symlink("there/later", path("dangling"));
  write_output_file(path("dangling"), "made");
  EXPECT_EQ(read_text(path("there/later")), "made");
  // A file of a model folder: the link may point into another model's.
  AtomicFile file(path("link"));
  file.write("own");
  file.commit();
  EXPECT_FALSE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(read_text(path("there/target")), "new");
}

TEST_F(AtomicFileTest, RefusesAFolder) {
  std::filesystem::create_directory(path("folder"));
  expect_error(ErrorCode::invalid_argument, "folder: cannot be opened: Is a directory",
               [&] { write_output_file(path("folder"), "x"); });
}

TEST_F(AtomicFileTest, SaysWhyItCannotBeCreated) {
  expect_error(ErrorCode::not_found, "a: cannot be created: No such file or directory",
               [&] { AtomicFile file(path("missing/a")); });
  write("plain", "");
  expect_error(ErrorCode::invalid_argument, "a: cannot be created: Not a directory",
               [&] { AtomicFile file(path("plain/a")); });
}

TEST_F(AtomicFileTest, RejectsAReadOnlyFolder) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  std::filesystem::permissions(
      folder_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  expect_error(ErrorCode::invalid_argument, "cannot be created: Permission denied",
               [&] { AtomicFile file(path("a")); });
}

TEST_F(AtomicFileTest, AFullDiskKeepsTheOldFile) {
  write("a", "old");
  // A file size limit stands in for a full disk.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::string message;
  ErrorCode code = ErrorCode::internal;
  try {
    AtomicFile file(path("a"));
    file.write(std::string(2000, 'x'));
    file.commit();
  } catch (const Error& error) {
    code = error.code();
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(code, ErrorCode::out_of_memory);
  EXPECT_THAT(message, testing::HasSubstr("a: cannot be written: File too large"));
  EXPECT_EQ(read_text(path("a")), "old");
  EXPECT_THAT(file_names(), ElementsAre("a"));
}

}  // namespace
}  // namespace heed
