#include "cli/training_display.h"

#include <gtest/gtest.h>

namespace heed::cli {
namespace {

TEST(StopOnInterrupt, RequestsAStopOnAnAlternateStack) {
  struct sigaction before {};
  sigaction(SIGINT, nullptr, &before);
  {
    const StopOnInterrupt interrupt;
    struct sigaction action {};
    stack_t stack{};
    sigaction(SIGINT, nullptr, &action);
    sigaltstack(nullptr, &stack);
    EXPECT_TRUE(action.sa_flags & SA_ONSTACK);
    EXPECT_FALSE(stack.ss_flags & SS_DISABLE);

    EXPECT_FALSE(StopOnInterrupt::requested());
    testing::internal::CaptureStderr();
    std::raise(SIGINT);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "\nstopping after this step; press again to exit now\n");
    EXPECT_TRUE(StopOnInterrupt::requested());
  }
  struct sigaction after {};
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

TEST(StopOnInterrupt, ASecondSignalEndsTheProcess) {
  const StopOnInterrupt interrupt;
  std::raise(SIGTERM);
  EXPECT_EXIT(std::raise(SIGTERM), testing::ExitedWithCode(128 + SIGTERM), "");
}

}  // namespace
}  // namespace heed::cli
