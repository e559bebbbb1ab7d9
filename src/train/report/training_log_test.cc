#include "train/report/training_log.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

using TrainingLogTest = FolderTest;

TEST(LogRecord, IsOneLineOfJson) {
  const LogRecord record{.kind = "validate",
                         .step = 7,
                         .values = {{"loss", 1.0 / 3}},
                         .samples = {"a \"b\"\n<c>", "\xff"},
                         .text = "t"};
  const std::string line = to_json_line(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const LogRecord back = record_from_line(line).value();
  EXPECT_EQ(back.kind, "validate");
  EXPECT_EQ(back.step, 7);
  EXPECT_EQ(back.value("loss"), 1.0 / 3);
  EXPECT_FALSE(back.value("bleu"));
  EXPECT_EQ(back.samples.at(0), record.samples[0]);
  EXPECT_EQ(back.text, "t");
  EXPECT_FALSE(record_from_line("{\"kind\": \"tr"));
  EXPECT_FALSE(record_from_line("[]"));
}

TEST(LogRecord, HasShortNumbers) {
  EXPECT_EQ(
      to_json_line({.kind = "train",
                    .step = 1,
                    .values = {{"ms", 0.19432799999999997}, {"tokens", 4096.0}, {"x", 1e-5}}}),
      R"({"kind":"train","step":1,"ms":0.194328,"tokens":4096,"x":1e-05})");
}

TEST_F(TrainingLogTest, GoesOnAfterAKill) {
  {
    TrainingLog log(folder_, 0);
    for (const int64_t step : {1, 2, 3}) {
      log.add({.kind = "train", .step = step, .values = {{"loss", 10.0 - double(step)}}});
    }
  }
  std::ofstream(path("log.jsonl"), std::ios::app) << "{\"kind\": \"tra";  // cut short
  TrainingLog log(folder_, 2);
  EXPECT_EQ(log.history().size(), 2u);
  log.add({.kind = "train", .step = 3, .values = {{"loss", 7}}});
  const TrainingLog again(folder_, 3);
  ASSERT_EQ(again.history().size(), 3u);  // step 3 was said twice, and counts once
  EXPECT_EQ(again.history()[2].value("loss"), 7.0);
}

// One file for each start, none of them beside the model; those of earlier versions join them.
TEST_F(TrainingLogTest, KeepsEventFilesInAFolderOfTheirOwn) {
  const std::string old = "events.out.tfevents.1.heed";
  std::filesystem::rename(EventFile(path("other"), 0).path(), path(old));
  std::filesystem::remove(path("other"));
  for (const int64_t step : {0, 1, 2}) {
    TrainingLog log(folder_, step);
    log.add({.kind = "train", .step = step + 1, .values = {{"loss", 1}}});
  }
  EXPECT_THAT(file_names(), testing::UnorderedElementsAre("events", "log.jsonl"));
  size_t files = 0, losses = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("events"))) {
    ++files;
    losses += read_event_scalars(entry.path()).size();
  }
  EXPECT_EQ(files, 4u);
  EXPECT_EQ(losses, 3u);
  EXPECT_TRUE(std::filesystem::exists(path("events/" + old)));
}

}  // namespace
}  // namespace heed
