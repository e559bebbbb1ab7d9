#include "model/files/file_problems.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

TEST(FileProblems, NothingIsWrong) {
  const FileProblems problems("a.safetensors");
  EXPECT_TRUE(problems.empty());
  problems.throw_if_any("never shown");
}

TEST(FileProblems, OneIsSaidPlainly) {
  FileProblems problems("a.safetensors");
  problems.add(ErrorCode::unsupported, "is odd");
  try {
    problems.throw_if_any("make it even");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_STREQ(error.what(), "a.safetensors: is odd");
    EXPECT_EQ(error.hint(), "make it even");
  }
}

TEST(FileProblems, ManyAreShownInPartAndCounted) {
  FileProblems problems("f");
  for (int i = 1; i <= 7; ++i)
    problems.add(i == 1 ? ErrorCode::not_found : ErrorCode::corrupt_file, std::to_string(i));
  expect_error(ErrorCode::not_found, "f: 7 problems: 1; 2; 3; 4; 5; and 2 more",
               [&] { problems.throw_if_any(); });
}

TEST(InQuotes, ShowsOnlyVisibleCharacters) {
  EXPECT_EQ(in_quotes("encoder.0.weight"), "'encoder.0.weight'");
  EXPECT_EQ(in_quotes("\x1b[2J\n"), "'\\x1b[2J\\x0a'");
  EXPECT_EQ(in_quotes("\xff"), "'\\xff'");
  EXPECT_LT(in_quotes(std::string(1000000, 'a')).size(), 200u);
}

}  // namespace
}  // namespace heed
