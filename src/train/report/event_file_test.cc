#include "train/report/event_file.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

using EventFileTest = FolderTest;

TEST(Crc32c, IsThePublishedOne) {
  // RFC 3720, B.4: 32 zeros, 32 ones, 0 … 31; and the usual "123456789".
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(masked_crc32c(""), 0xa282ead8u);
}

TEST_F(EventFileTest, StartsWithTheBytesTensorBoardExpects) {
  EventFile events(folder_, 0);
  const std::string bytes = read_text(events.path());
  // Length 26: wall time (9), step 0 (2), file version (2 + 13).
  ASSERT_EQ(bytes.size(), 8u + 4 + 26 + 4);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x1a\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes[12], '\x09');                              // field 1, 64 bits
  EXPECT_EQ(bytes.substr(21, 2), std::string("\x10\0", 2));  // field 2, 0
  EXPECT_EQ(bytes.substr(23, 15),
            "\x1a\x0d"
            "brain.Event:2");
}

TEST_F(EventFileTest, GivesBackWhatWasWritten) {
  EventFile events(folder_, 300);
  EXPECT_TRUE(events.scalar("train/loss", 301, 2.5));
  EXPECT_TRUE(events.scalar("learning_rate", 1'000'000'000'000, 1e-4));
  const auto scalars = read_event_scalars(events.path());
  ASSERT_EQ(scalars.size(), 2u);
  EXPECT_EQ(scalars[0].tag, "train/loss");
  EXPECT_EQ(scalars[0].step, 301);
  EXPECT_EQ(scalars[0].value, 2.5f);
  EXPECT_EQ(scalars[1].tag, "learning_rate");
  EXPECT_EQ(scalars[1].step, 1'000'000'000'000);
  EXPECT_EQ(scalars[1].value, 1e-4f);
}

TEST_F(EventFileTest, TwoFilesOfOneSecondAreTwoFiles) {
  const EventFile first(folder_, 0), second(folder_, 0);
  EXPECT_NE(first.path(), second.path());
}

TEST_F(EventFileTest, ABrokenFileIsSaidToBe) {
  EventFile events(folder_, 0);
  events.scalar("loss", 1, 1);
  std::string bytes = read_text(events.path());
  bytes[bytes.size() - 6] ^= 1;
  expect_error(ErrorCode::corrupt_file, "checksum",
               [&] { read_event_scalars(write("changed", bytes)); });
  bytes.resize(bytes.size() - 2);
  expect_error(ErrorCode::corrupt_file, "truncated record",
               [&] { read_event_scalars(write("short", bytes)); });
}

TEST_F(EventFileTest, AFolderThatCannotBeMadeIsAnError) {
  write("file", "");
  expect_error(ErrorCode::invalid_argument, "file/events",
               [&] { EventFile(path("file/events"), 0); });
}

}  // namespace
}  // namespace heed
