#include "base/text/base64.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

std::string encoded(std::string_view text) { return encode_base64(std::as_bytes(std::span(text))); }

TEST(Base64, EncodesTheExamplesOfRfc4648) {
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded("\xFF\xEF"), "/+8=");
}

TEST(Base64, DecodesWithAndWithoutPadding) {
  EXPECT_EQ(decode_base64("aGVlZA=="), "heed");
  EXPECT_EQ(decode_base64("aGVlZA"), "heed");
  EXPECT_EQ(decode_base64("/+8"), "\xFF\xEF");
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("a b"), std::nullopt);
}

}  // namespace
}  // namespace heed
