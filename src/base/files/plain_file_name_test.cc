#include "base/files/plain_file_name.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(PlainFileName, AcceptsOnlyFilesInTheSameFolder) {
  for (const std::string_view name : {"a", "model-00001-of-00002.safetensors", "..a", "a..b"}) {
    EXPECT_TRUE(is_plain_file_name(name)) << name;
  }
  for (const std::string_view name :
       {std::string_view(""), std::string_view("."), std::string_view(".."),
        std::string_view("/dev/zero"), std::string_view("../a"), std::string_view("a\\b"),
        std::string_view("a\0b", 3)}) {
    EXPECT_FALSE(is_plain_file_name(name)) << name;
  }
}

}  // namespace
}  // namespace heed
