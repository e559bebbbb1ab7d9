#include "cli/verbs.h"

#include <gtest/gtest.h>

namespace heed::cli {
namespace {

// Every command must say what it is for, in one line that fits a terminal.
void expect_summaries(const CLI::App& command) {
  for (const CLI::App* sub : command.get_subcommands({})) {
    const std::string summary = sub->get_description();
    EXPECT_FALSE(summary.empty()) << sub->get_name();
    EXPECT_LE(summary.size(), 70u) << sub->get_name();
    expect_summaries(*sub);
  }
}

TEST(Verbs, EachHasASummary) {
  Program program;
  add_verbs(program);
  EXPECT_FALSE(program.heed().get_subcommands({}).empty());
  expect_summaries(program.heed());
}

}  // namespace
}  // namespace heed::cli
