#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace heed {
namespace {

TEST(Log, WithoutASinkSaysNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Log log;
  log.debug("a");
  log.info("b");
  log.warning("c");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Log, PassesLevelAndMessageToTheSink) {
  std::vector<std::pair<LogLevel, std::string>> seen;
  const Log log([&](LogLevel level, std::string_view message) {
    seen.emplace_back(level, std::string(message));
  });
  log.debug("a");
  const Log copy = log;  // parts of the library keep copies; all speak to one sink
  copy.info("b");
  log.warning("c");
  const std::vector<std::pair<LogLevel, std::string>> expected = {
      {LogLevel::debug, "a"}, {LogLevel::info, "b"}, {LogLevel::warning, "c"}};
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace heed
