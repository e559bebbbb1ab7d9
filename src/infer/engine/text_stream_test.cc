#include "infer/engine/text_stream.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

std::vector<int32_t> bytes(std::string_view text) {
  return make_tokenizer("byte")->encode_ids(text, {.special_tokens = false});
}

// The pieces, each in brackets.
std::string stream(std::string_view text, std::vector<std::string> stop) {
  TextStream s(make_tokenizer("byte"), std::move(stop), bytes("before"));
  std::string all;
  const auto add = [&](const std::string& piece) {
    if (!piece.empty()) all += "[" + piece + "]";
  };
  for (const int32_t id : bytes(text)) add(s.add(id));
  add(s.finish());
  return all;
}

TEST(TextStream, GivesWholeCharacters) { EXPECT_EQ(stream("aé€", {}), "[a][é][€]"); }

TEST(TextStream, GivesTheRestAtTheEndHoweverBroken) {
  EXPECT_EQ(stream("a\xE2\x82", {}).substr(0, 3), "[a]");
  EXPECT_GT(stream("a\xE2\x82", {}).size(), 3u);
}

TEST(TextStream, HoldsBackWhatMayBecomeAStopText) {
  EXPECT_EQ(stream("abxaby", {"abc"}), "[abx][aby]");
  EXPECT_EQ(stream("xab", {"abc"}), "[x][ab]");
}

TEST(TextStream, EndsBeforeAStopText) {
  EXPECT_EQ(stream("xyabcz", {"abc"}), "[x][y]");
  EXPECT_EQ(stream("xybz", {"abc", "yb"}), "[x]");
}

}  // namespace
}  // namespace heed
