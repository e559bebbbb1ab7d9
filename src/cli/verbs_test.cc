#include "cli/verbs.h"

#include <gtest/gtest.h>

namespace heed::cli {
namespace {

// Every command must say what it is for, in one line that fits a terminal.
void expect_summaries(const Command& command) {
  for (const Command& sub : command.subcommands()) {
    const std::string summary = sub.summary();
    EXPECT_FALSE(summary.empty()) << sub.name();
    EXPECT_LE(summary.size(), 70u) << sub.name();
    expect_summaries(sub);
  }
}

TEST(Verbs, EachHasASummary) {
  Program program;
  add_verbs(program);
  EXPECT_FALSE(program.heed().subcommands().empty());
  expect_summaries(program.heed());
}

}  // namespace
}  // namespace heed::cli
