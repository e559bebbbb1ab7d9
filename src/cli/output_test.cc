#include "cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "heed/error.h"

namespace heed::cli {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

TEST(Output, WritesWhatItIsGiven) {
  const File file(std::tmpfile(), std::fclose);
  ASSERT_NE(file, nullptr);
  Output out(file.get());
  out.write("one\n");
  out.write("two\n");
  out.flush();

  std::rewind(file.get());
  char text[16] = {};
  EXPECT_EQ(std::fread(text, 1, sizeof text, file.get()), 8u);
  EXPECT_STREQ(text, "one\ntwo\n");
}

TEST(Output, AFullDiskIsAnError) {
  const File full(std::fopen("/dev/full", "w"), std::fclose);
  if (!full) GTEST_SKIP() << "this system has no /dev/full";
  Output out(full.get());
  out.write("lost");
  try {
    out.flush();
    FAIL() << "a full disk went unnoticed";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("No space left on device"));
    EXPECT_FALSE(e.hint().empty());
  }
}

TEST(Output, AReaderThatHasGoneIsNoError) {
  std::signal(SIGPIPE, SIG_IGN);  // as main() does
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const File file(fdopen(ends[1], "w"), std::fclose);
  Output out(file.get());
  out.write("unread");
  EXPECT_THROW(out.flush(), ReaderGone);
}

}  // namespace
}  // namespace heed::cli
