#include "heed/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/check.h"

namespace heed {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string message_of_failure_in(const char* file) {
  try {
    check_failed(file, 7, "a == b", "sizes differ");
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Error, CarriesCodeMessageAndHint) {
  const Error error(ErrorCode::not_found, "no model.safetensors in dir", "pass --model");
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_STREQ(error.what(), "no model.safetensors in dir");
  EXPECT_EQ(error.hint(), "pass --model");
  EXPECT_TRUE(Error(ErrorCode::internal, "x").hint().empty());
}

TEST(Error, NamesAreTheEnumerators) {
  EXPECT_STREQ(name(ErrorCode::invalid_argument), "invalid_argument");
  EXPECT_STREQ(name(ErrorCode::not_found), "not_found");
  EXPECT_STREQ(name(ErrorCode::corrupt_file), "corrupt_file");
  EXPECT_STREQ(name(ErrorCode::unsupported), "unsupported");
  EXPECT_STREQ(name(ErrorCode::out_of_memory), "out_of_memory");
  EXPECT_STREQ(name(ErrorCode::cancelled), "cancelled");
  EXPECT_STREQ(name(ErrorCode::internal), "internal");
}

TEST(Check, PassesSilently) { EXPECT_NO_THROW(HEED_CHECK(1 + 1 == 2, "arithmetic")); }

TEST(Check, ThrowsInternalWithReasonConditionAndPlace) {
  const int rows = 3;
  try {
    HEED_CHECK(rows == 4, "rows must be 4, not " + std::to_string(rows));
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_THAT(error.what(), StartsWith("internal error: rows must be 4, not 3 (rows == 4) at "
                                         "src/base/error_test.cc:"));
  }
}

TEST(Check, EvaluatesTheReasonOnlyOnFailure) {
  bool built = false;
  const auto reason = [&] { return built = true, "unused"; };
  HEED_CHECK(true, reason());
  EXPECT_FALSE(built);
}

TEST(Check, HidesPathsOfTheBuildMachine) {
  EXPECT_EQ(message_of_failure_in("/home/ann/heed/src/ops/linear.cc"),
            "internal error: sizes differ (a == b) at src/ops/linear.cc:7");
  EXPECT_THAT(message_of_failure_in("/usr/src/heed/src/ops/linear.cc"),
              HasSubstr("at src/ops/linear.cc:7"));
  EXPECT_THAT(message_of_failure_in("src/ops/linear.cc"), HasSubstr("at src/ops/linear.cc:7"));
  // Headers are included through the build directory's links.
  EXPECT_THAT(message_of_failure_in("/usr/src/heed/build/release/include/ops/ops/mat.h"),
              HasSubstr("at src/ops/mat.h:7"));
  EXPECT_THAT(message_of_failure_in("/usr/src/heed/include/heed/error.h"),
              HasSubstr("at include/heed/error.h:7"));
  // Outside src/ and include/: the file name only.
  EXPECT_THAT(message_of_failure_in("/home/ann/elsewhere/linear.cc"), HasSubstr("at linear.cc:7"));
  EXPECT_THAT(message_of_failure_in("/home/ann/mysrc/linear.cc"), Not(HasSubstr("ann")));
}

}  // namespace
}  // namespace heed
