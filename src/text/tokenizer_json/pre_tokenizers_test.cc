#include "text/tokenizer_json/pre_tokenizers.h"

#include <string>

#include "base/files/file_testing.h"

namespace heed {
namespace {

std::unique_ptr<PreTokenizer> make(const std::string& json) {
  const auto document = nlohmann::json::parse(json);
  return read_pre_tokenizer(JsonNode(document, "pre_tokenizer"));
}

// The pieces joined by |.
std::string split(const std::string& json, std::string_view text) {
  SplitText parts;
  parts.text = AlignedText(text, 0, true);
  if (!text.empty()) parts.pieces = {{0, static_cast<uint32_t>(text.size())}};
  make(json)->split(parts);
  EXPECT_EQ(parts.text.sources.size(), parts.text.text.size());
  std::string joined;
  for (const TextPiece& piece : parts.pieces) {
    EXPECT_LT(piece.begin, piece.end);
    if (!joined.empty()) joined += "|";
    joined += parts.text.text.substr(piece.begin, piece.end - piece.begin);
  }
  return joined;
}

std::string split_at_dash(const std::string& behavior, bool invert) {
  return split(R"({"type": "Split", "pattern": {"String": "-"}, "behavior": ")" + behavior +
                   R"(", "invert": )" + (invert ? "true" : "false") + "}",
               "the-final--countdown-");
}

// The example of the tokenizers documentation, with a dash at the end.
TEST(PreTokenizers, SplitBehaviors) {
  EXPECT_EQ(split_at_dash("Removed", false), "the|final|countdown");
  EXPECT_EQ(split_at_dash("Isolated", false), "the|-|final|-|-|countdown|-");
  EXPECT_EQ(split_at_dash("MergedWithPrevious", false), "the-|final-|-|countdown-");
  EXPECT_EQ(split_at_dash("MergedWithNext", false), "the|-final|-|-countdown|-");
  EXPECT_EQ(split_at_dash("Contiguous", false), "the|-|final|--|countdown|-");
  EXPECT_EQ(split_at_dash("Removed", true), "-|-|-|-");
  EXPECT_EQ(split_at_dash("MergedWithPrevious", true), "the|-final|-|-countdown|-");
  EXPECT_EQ(split_at_dash("MergedWithNext", true), "the-|final-|-|countdown-");
}

TEST(PreTokenizers, Kinds) {
  EXPECT_EQ(split(R"({"type": "BertPreTokenizer"})", " Hi, you$ 中"), "Hi|,|you|$|中");
  EXPECT_EQ(split(R"({"type": "Whitespace"})", "a-b½ c_d é"), "a|-|b|½|c_d|é");
  EXPECT_EQ(split(R"({"type": "WhitespaceSplit"})", "a, \u3000b"), "a,|b");
  EXPECT_EQ(split(R"({"type": "Punctuation"})", "a.,b+c"), "a|.|,|b|+|c");
  EXPECT_EQ(split(R"({"type": "Punctuation", "behavior": "Contiguous"})", "a.,b"), "a|.,|b");
  EXPECT_EQ(split(R"({"type": "Digits"})", "ab123½c"), "ab|123½|c");
  EXPECT_EQ(split(R"({"type": "Digits", "individual_digits": true})", "ab12c"), "ab|1|2|c");
  EXPECT_EQ(split(R"({"type": "CharDelimiterSplit", "delimiter": "é"})", "aébéé"), "a|b");
  EXPECT_EQ(
      split(R"({"type": "Split", "pattern": {"Regex": "\\d"}, "behavior": "Isolated"})", "a1"),
      "a|1");
  EXPECT_EQ(split(R"({"type": "Sequence", "pretokenizers":
                      [{"type": "WhitespaceSplit"}, {"type": "Digits"}]})",
                  "a1 b"),
            "a|1|b");
}

TEST(PreTokenizers, ByteLevel) {
  EXPECT_EQ(split(R"({"type": "ByteLevel", "add_prefix_space": false})", "Hi é\n"), "Hi|ĠÃ©|Ċ");
  EXPECT_EQ(split(R"({"type": "ByteLevel", "add_prefix_space": true})", "Hi"), "ĠHi");
  EXPECT_EQ(split(R"({"type": "ByteLevel", "add_prefix_space": true})", " Hi"), "ĠHi");
  EXPECT_EQ(split(R"({"type": "ByteLevel", "use_regex": false})", "a b"), "ĠaĠb");
  const auto bytes = make(R"({"type": "ByteLevel", "add_prefix_space": false})");
  EXPECT_TRUE(bytes->keep_bytes());
  SplitText parts;
  parts.text = AlignedText("é\xFF x", 0, false);
  parts.pieces = {{0, 5}};
  bytes->split(parts);
  EXPECT_EQ(parts.text.text, "é\xFF x");
}

TEST(PreTokenizers, Metaspace) {
  EXPECT_EQ(split(R"({"type": "Metaspace"})", "a b  c"), "▁a|▁b|▁|▁c");
  EXPECT_EQ(split(R"({"type": "Metaspace"})", " a"), "▁a");
  EXPECT_EQ(split(R"({"type": "Metaspace"})", "▁a"), "▁a");
  EXPECT_EQ(split(R"({"type": "Metaspace", "split": false})", "a b"), "▁a▁b");
  EXPECT_EQ(split(R"({"type": "Metaspace", "prepend_scheme": "never"})", "a b"), "a|▁b");
  EXPECT_EQ(split(R"({"type": "Metaspace", "add_prefix_space": false})", "a b"), "a|▁b");
  EXPECT_EQ(split(R"({"type": "Metaspace", "replacement": "_"})", "a b"), "_a|_b");
  // Only the start of the source gets the mark.
  const auto first = make(R"({"type": "Metaspace", "prepend_scheme": "first"})");
  for (const size_t source : {size_t{0}, size_t{5}}) {
    SplitText parts;
    parts.text = AlignedText("a", source, false);
    parts.source_begin = source;
    parts.pieces = {{0, 1}};
    first->split(parts);
    EXPECT_EQ(parts.text.text, source == 0 ? "▁a" : "a");
  }
}

TEST(PreTokenizers, KeepAddedTokens) {
  SplitText parts;
  parts.text = AlignedText("a <x y> b", 0, false);
  parts.pieces = {{0, 2}, {2, 7, 42}, {7, 9}};
  make(R"({"type": "Metaspace"})")->split(parts);
  ASSERT_EQ(parts.pieces.size(), 4U);
  EXPECT_EQ(parts.text.text, "▁a▁<x y>▁b");
  EXPECT_EQ(parts.pieces[2].id, 42);
}

TEST(PreTokenizers, RejectInvalidFiles) {
  expect_error(ErrorCode::unsupported, "'Chop' is not supported",
               [] { make(R"({"type": "Chop"})"); });
  expect_error(ErrorCode::unsupported, "'Shuffled' is not supported", [] {
    make(R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Shuffled"})");
  });
  expect_error(ErrorCode::unsupported, "'sometimes' is not supported",
               [] { make(R"({"type": "Metaspace", "prepend_scheme": "sometimes"})"); });
  expect_error(ErrorCode::corrupt_file, "must be one character",
               [] { make(R"({"type": "CharDelimiterSplit", "delimiter": "ab"})"); });
}

}  // namespace
}  // namespace heed
