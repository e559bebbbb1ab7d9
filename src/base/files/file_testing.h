// Shared by tests that read and write files.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/error.h"

namespace heed {

inline const std::string kGoldenFolder = std::string(HEED_TEST_DATA) + "/golden/";

// A temporary folder per process: tests may run in parallel.
class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("heed_file_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return folder_ / name; }

  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  std::vector<std::string> file_names() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder_))
      names.push_back(file.path().filename());
    return names;
  }

  std::filesystem::path folder_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Function>
void expect_error(ErrorCode code, const std::string& message, Function function) {
  try {
    function();
    ADD_FAILURE() << "did not throw: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr(message));
  }
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace heed
