#include "text/tokenizer_json/added_tokens.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

// The parts with | between, tokens as <id>.
std::string cut(const std::vector<AddedToken>& tokens, std::string_view text) {
  AddedTokenFinder finder;
  for (const AddedToken& token : tokens) finder.add(token, nullptr);
  std::string joined;
  size_t at = 0;
  finder.cut(text, [&](const AddedTokenFinder::Part& part) {
    EXPECT_EQ(part.begin, at) << "parts lie end to end";
    EXPECT_LT(part.begin, part.end);
    at = part.end;
    if (!joined.empty()) joined += "|";
    if (part.id >= 0) {
      joined.append("<").append(std::to_string(part.id)).append(">");
    } else {
      joined += text.substr(part.begin, part.end - part.begin);
    }
  });
  EXPECT_EQ(at, text.size());
  return joined;
}

TEST(AddedTokens, MatchesLeftmostLongest) {
  const std::vector<AddedToken> tokens = {
      {.content = "ab", .id = 1}, {.content = "abc", .id = 2}, {.content = "bcd", .id = 3}};
  EXPECT_EQ(cut(tokens, "xabcdab"), "x|<2>|d|<1>");
  EXPECT_EQ(cut(tokens, "ababc"), "<1>|<2>");
  EXPECT_EQ(cut(tokens, "x"), "x");
  EXPECT_EQ(cut(tokens, ""), "");
  EXPECT_EQ(cut({}, "abc"), "abc");
}

TEST(AddedTokens, SingleWords) {
  const std::vector<AddedToken> tokens = {{.content = "in", .id = 1, .single_word = true}};
  EXPECT_EQ(cut(tokens, "in inside (in) éin in"), "<1>| inside (|<1>|) éin |<1>");
}

TEST(AddedTokens, StripWhiteSpace) {
  const std::vector<AddedToken> tokens = {
      {.content = "[M]", .id = 1, .lstrip = true, .rstrip = true},
      {.content = "[L]", .id = 2, .lstrip = true},
      {.content = " x", .id = 3}};
  EXPECT_EQ(cut(tokens, "a \u00A0[M] \n[L] b"), "a|<1>|<2>| b");
  EXPECT_EQ(cut(tokens, "  [L]"), "<2>");
  // White space of one match is not available to the next.
  EXPECT_EQ(cut(tokens, "[M] xy"), "<1>|xy");
}

TEST(AddedTokens, MatchNormalizedText) {
  const auto document = nlohmann::json::parse(R"({"type": "Lowercase"})");
  const auto lower = read_normalizer(JsonNode(document, "normalizer"));
  AddedTokenFinder finder;
  finder.add({.content = "HeLLo", .id = 1}, lower.get());
  finder.add({.content = "hello", .id = 2},
             lower.get());  // equal after normalization: the first is used
  int32_t id = -1;
  finder.cut("hello", [&](const AddedTokenFinder::Part& part) { id = part.id; });
  EXPECT_EQ(id, 1);
}

TEST(AddedTokens, Reads) {
  const auto document = nlohmann::json::parse(
      R"([{"id": 5, "content": "<a>", "special": true, "lstrip": true}, {"id": 6, "content": "b"}])");
  const std::vector<AddedToken> tokens = read_added_tokens(JsonNode(document, "t"));
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_TRUE(tokens[0].is_special && tokens[0].lstrip && !tokens[0].normalized);
  EXPECT_TRUE(!tokens[1].is_special && tokens[1].normalized);
  const auto bad = nlohmann::json::parse(R"([{"id": -5, "content": "<a>"}])");
  expect_error(ErrorCode::corrupt_file, "must be a number from 0",
               [&] { read_added_tokens(JsonNode(bad, "t")); });
}

}  // namespace
}  // namespace heed
