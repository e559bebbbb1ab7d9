#include "base/files/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "heed/error.h"

namespace heed {
namespace {

using testing::HasSubstr;

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    // A folder per process: tests may run in parallel.
    folder_ = std::filesystem::temp_directory_path() /
              ("heed_mapped_file_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }

  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  std::filesystem::path folder_;
};

template <class Function>
void expect_error(ErrorCode code, const std::string& message, Function function) {
  try {
    function();
    ADD_FAILURE() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST_F(MappedFileTest, HoldsTheContentOfTheFile) {
  const MappedFile file(write("a", "0123456789"));
  EXPECT_EQ(file.path(), path("a"));
  EXPECT_EQ(file.size(), 10u);
  EXPECT_EQ(text(file.bytes()), "0123456789");
  EXPECT_EQ(text(file.bytes(2, 3, "middle")), "234");
  EXPECT_EQ(text(file.bytes(0, 10, "all")), "0123456789");
  EXPECT_EQ(text(file.bytes(10, 0, "nothing at the end")), "");
}

TEST_F(MappedFileTest, ChecksBounds) {
  const MappedFile file(write("a", "0123456789"));
  const auto expect_corrupt = [&](uint64_t offset, uint64_t length) {
    expect_error(ErrorCode::corrupt_file, "a: the header must be",
                 [&] { file.bytes(offset, length, "the header"); });
  };
  expect_corrupt(0, 11);
  expect_corrupt(10, 1);
  expect_corrupt(11, 0);
  expect_corrupt(5, 6);
  expect_corrupt(kHuge, 1);
  expect_corrupt(1, kHuge);
  expect_corrupt(kHuge, kHuge);
  expect_corrupt(kHuge - 4, 10);
  expect_error(ErrorCode::corrupt_file, "6 bytes at offset 5, but the file has only 10 bytes",
               [&] { file.bytes(5, 6, "the header"); });
}

TEST_F(MappedFileTest, MapsAnEmptyFile) {
  const MappedFile file(write("empty", ""));
  EXPECT_EQ(file.size(), 0u);
  EXPECT_TRUE(file.bytes().empty());
  EXPECT_TRUE(file.bytes(0, 0, "nothing").empty());
  EXPECT_THROW(file.bytes(0, 1, "something"), Error);
}

TEST_F(MappedFileTest, SaysWhyItCannotOpen) {
  expect_error(ErrorCode::not_found, "missing: cannot be opened: No such file",
               [&] { MappedFile file(path("missing")); });
  expect_error(ErrorCode::invalid_argument, "must be a regular file, got a directory",
               [&] { MappedFile file(folder_.string()); });
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_error(ErrorCode::invalid_argument, "must be a regular file, got a pipe",
               [&] { MappedFile file(path("pipe")); });
}

TEST_F(MappedFileTest, MovesKeepTheMapping) {
  MappedFile first(write("a", "first"));
  const std::byte* data = first.bytes().data();
  MappedFile second(std::move(first));
  EXPECT_EQ(second.bytes().data(), data);
  MappedFile third(write("b", "other"));
  third = std::move(second);
  EXPECT_EQ(text(third.bytes()), "first");
  EXPECT_EQ(third.path(), path("a"));
}

TEST_F(MappedFileTest, StaysValidAfterTheFileIsRemoved) {
  const MappedFile file(write("a", "content"));
  std::filesystem::remove(path("a"));
  EXPECT_EQ(text(file.bytes()), "content");
}

TEST(MappedFilePages, CanBeDroppedAndReadAgain) {
  const std::string path = testing::TempDir() + "heed_drop_pages";
  const std::string text(100000, 'x');
  std::ofstream(path) << text;
  const MappedFile file(path);
  file.drop_pages();
  const auto bytes = file.bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), text);
  file.drop_pages();
  EXPECT_EQ(static_cast<char>(bytes[99999]), 'x');
  std::remove(path.c_str());
}

}  // namespace
}  // namespace heed
