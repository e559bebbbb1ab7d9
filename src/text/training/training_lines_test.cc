#include "text/training/training_lines.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

class TrainingLinesTest : public FolderTest {
 protected:
  std::vector<std::string> read(const TokenizerTraining& training, TrainingLines::Invalid invalid) {
    TrainingLines lines(training, invalid, report_);
    std::vector<std::string> all;
    for (std::string line; lines.next(line);) all.push_back(line);
    return all;
  }
  TokenizerTrainingReport report_;
};

TEST_F(TrainingLinesTest, CountsWhatItReads) {
  TokenizerTraining training;
  training.files = {write("a", "one\n \t\n\xff two\n"), write("b", ""), write("c", "three")};
  using Lines = std::vector<std::string>;
  EXPECT_EQ(read(training, TrainingLines::Invalid::repaired),
            (Lines{"one", "\xef\xbf\xbd two", "three"}));
  EXPECT_EQ(report_.lines, 4);
  EXPECT_EQ(report_.bytes, 4 + 3 + 6 + 6);
  EXPECT_EQ(report_.empty_lines, 1);
  EXPECT_EQ(report_.invalid_lines, 1);
  EXPECT_EQ(read(training, TrainingLines::Invalid::kept), (Lines{"one", "\xff two", "three"}));
}

TEST_F(TrainingLinesTest, ReportsProgress) {
  TokenizerTraining training;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "a line\n";
  training.files = {write("a", text)};
  std::vector<double> told;
  training.progress = [&told](std::string_view, double done) { told.push_back(done); };
  read(training, TrainingLines::Invalid::kept);
  ASSERT_GT(told.size(), 10u);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LE(told.back(), 1.0);
}

TEST_F(TrainingLinesTest, RejectsEmptyFiles) {
  TokenizerTraining training;
  expect_error(ErrorCode::invalid_argument, "no text",
               [&] { read(training, TrainingLines::Invalid::kept); });
  training.files = {write("a", "\n\n")};
  TrainingLines lines(training, TrainingLines::Invalid::kept, report_);
  std::string line;
  EXPECT_FALSE(lines.next(line));
  expect_error(ErrorCode::invalid_argument, "a is empty", [&] { lines.check_not_empty(); });
  training.files = {path("nothing")};
  expect_error(ErrorCode::not_found, "nothing",
               [&] { read(training, TrainingLines::Invalid::kept); });
}

}  // namespace
}  // namespace heed
