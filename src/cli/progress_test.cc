#include "cli/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace heed::cli {
namespace {

// What a progress line that lives through `use` leaves in its file.
template <class Use>
std::string written(bool shown, Use use) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    ProgressLine line(file.get(), shown);
    use(line);
  }
  std::rewind(file.get());
  char text[256];
  return std::string(text, std::fread(text, 1, sizeof text, file.get()));
}

TEST(ProgressLine, RewritesItselfAndClearsAtTheEnd) {
  const auto twice = [](ProgressLine& line) {
    line.show("1/2");
    line.show("2/2");
  };
  EXPECT_EQ(written(true, twice), "\r\033[K1/2\r\033[K2/2\r\033[K");
}

TEST(ProgressLine, WritesNothingWhenNotShown) {
  EXPECT_EQ(written(false, [](ProgressLine& line) { line.show("1/2"); }), "");
}

TEST(ProgressLine, IsCutToTheTerminal) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << "no terminals here: /dev/pts is not mounted";
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(ptsname(terminal), "w"),
                                                             std::fclose);
  ASSERT_TRUE(file);
  const winsize size{.ws_row = 24, .ws_col = 6, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
  char text[64];
  {
    ProgressLine line(file.get(), true);
    line.show("ÄÖÜ456789");
    const ssize_t bytes = read(terminal, text, sizeof text);
    ASSERT_GT(bytes, 0);
    EXPECT_EQ(std::string(text, static_cast<size_t>(bytes)), "\r\033[KÄÖÜ45");
  }
  close(terminal);
}

TEST(ProgressLine, ClearsOnlyWhatItWrote) {
  EXPECT_EQ(written(true, [](ProgressLine& line) { line.clear(); }), "");
}

}  // namespace
}  // namespace heed::cli
