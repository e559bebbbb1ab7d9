#include "cli/line_verb.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "heed/error.h"

namespace heed::cli {
namespace {

TEST(SplitPair, TakesExactlyOneTab) {
  const TaskInput pair = split_pair("a cat\t", 1);
  EXPECT_EQ(pair.text, "a cat");
  EXPECT_EQ(pair.second, "");
  EXPECT_THROW(split_pair("a cat", 1), Error);
  try {
    split_pair("a\tb\tc", 17);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "line 17: must be two texts separated by a tab, got more than one tab");
  }
}

TEST(EachLines, GivesAllLinesOfAllFilesInGroups) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("heed_line_verb." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  LineFlags flags;
  std::vector<std::string> expected;
  for (const char* name : {"a", "b"}) {
    flags.files.push_back(folder / name);
    std::ofstream file(flags.files.back());
    for (int i = 0; i < 700; ++i) {
      expected.push_back(name + std::to_string(i));
      file << expected.back() << "\n";
    }
  }
  std::vector<std::string> found;
  int groups = 0;
  each_lines(flags, [&](const Lines& lines) {
    EXPECT_EQ(lines.first, static_cast<int64_t>(found.size()) + 1);
    found.insert(found.end(), lines.texts.begin(), lines.texts.end());
    ++groups;
  });
  EXPECT_EQ(found, expected);
  EXPECT_GT(groups, 2);
  flags.files = {folder / "gone"};
  EXPECT_THROW(each_lines(flags, [](const Lines&) {}), Error);
  std::filesystem::remove_all(folder);
}

TEST(CutLinesReport, NamesTheFirstFew) {
  CutLines cut;
  for (int64_t line = 1; line <= 9; ++line) cut.add(line, {.tokens = 64, .truncated = line > 2});
  testing::internal::CaptureStderr();
  cut.report();
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "warning: 7 inputs were longer than 64 tokens and were truncated: line 3, 4, 5, 6, 7, …\n");
  testing::internal::CaptureStderr();
  CutLines().report();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace heed::cli
