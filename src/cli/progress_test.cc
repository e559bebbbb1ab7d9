#include "cli/progress.h"

#include <gtest/gtest.h>

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

TEST(ProgressLine, ClearsOnlyWhatItWrote) {
  EXPECT_EQ(written(true, [](ProgressLine& line) { line.clear(); }), "");
}

}  // namespace
}  // namespace heed::cli
