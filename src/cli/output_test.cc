#include "cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "heed/error.h"

namespace heed::cli {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

TEST(Output, WritesWhatItIsGiven) {
  const File file(std::tmpfile(), std::fclose);
  ASSERT_NE(file, nullptr);
  Output out(file.get());
  out.write("one\n");
  out.write("two\n");
  out.flush();

  std::rewind(file.get());
  char text[16] = {};
  EXPECT_EQ(std::fread(text, 1, sizeof text, file.get()), 8u);
  EXPECT_STREQ(text, "one\ntwo\n");
}

TEST(Printable, IsOneLineThatSteersNoTerminal) {
  EXPECT_EQ(printable("größer\n2 €, 𝄞"), "größer 2 €, 𝄞");
  EXPECT_EQ(printable("a\x1b[31mb\t\x7f"), "a\\x1b[31mb\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\\xc2\\x9b1m");
  // Not UTF-8: a stray byte, an overlong form, a surrogate, one that is cut off.
  EXPECT_EQ(printable("\xff \xc0\xaf \xed\xa0\x80 \xe2\x82"),
            "\\xff \\xc0\\xaf \\xed\\xa0\\x80 \\xe2\\x82");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Message, HasALineForEachItemOfAList) {
  EXPECT_EQ(message_text("error", "a\nb"), "error: a b\n");
  EXPECT_EQ(message_text("error", "r.toml: 2 problems\n  - one\n  - t\x1bwo"),
            "error: r.toml: 2 problems\n  - one\n  - t\\x1bwo\n");
}

TEST(Printable, IsShort) {
  const std::string line = printable("first " + std::string(100'000, 'x') + " last");
  EXPECT_LT(line.size(), 2000u);
  EXPECT_TRUE(line.starts_with("first x") && line.ends_with("x last"));
  EXPECT_EQ(printable(std::string(2000, 'x')), std::string(2000, 'x'));
}

TEST(Output, AFullDiskIsAnError) {
  const File full(std::fopen("/dev/full", "w"), std::fclose);
  if (!full) GTEST_SKIP() << "this system has no /dev/full";
  Output out(full.get());
  out.write("lost");
  try {
    out.flush();
    FAIL() << "a full disk was not detected";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("No space left on device"));
    EXPECT_FALSE(e.hint().empty());
  }
}

TEST(Output, AClosedReaderIsNoError) {
  std::signal(SIGPIPE, SIG_IGN);  // as main() does
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const File file(fdopen(ends[1], "w"), std::fclose);
  Output out(file.get());
  out.write("unread");
  EXPECT_THROW(out.flush(), ReaderGone);
}

TEST(IsText, IsUtf8WithoutNul) {
  EXPECT_TRUE(is_text(""));
  EXPECT_TRUE(is_text("Grüße,\t日本 😀"));
  EXPECT_FALSE(
      is_text("Gr\xfc\xdf"
              "e"));
  EXPECT_FALSE(is_text(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace heed::cli
