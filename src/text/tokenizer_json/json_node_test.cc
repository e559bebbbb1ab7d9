#include "text/tokenizer_json/json_node.h"

#include "base/files/file_testing.h"
#include "text/tokenizers/tokenizer_folder.h"

namespace heed {
namespace {

TEST(JsonNode, ReportsPathAndType) {
  const auto document = parse_json(R"({"a": {"list": ["x", 3]}, "n": 7, "big": 1e99})", "f.json");
  const JsonNode root(document, "f.json");
  EXPECT_EQ(root.at("a").at("list").at(size_t{0}).text(), "x");
  EXPECT_EQ(root.at("n").integer(0, 9), 7);
  EXPECT_EQ(root.text("none", "else"), "else");
  EXPECT_TRUE(root.flag("none", true));
  const auto expect_corrupt = [](const std::string& message, auto read) {
    expect_error(ErrorCode::corrupt_file, message, read);
  };
  expect_corrupt("f.json: a.list[1]: must be a text, got a whole number",
                 [&] { root.at("a").at("list").at(1).text(); });
  expect_corrupt("f.json: 'b' is missing", [&] { root.at("b"); });
  expect_corrupt("f.json: a: must be a list, got an object", [&] { root.at("a").elements(); });
  expect_corrupt("f.json: n: must be a number from 0 to 3, got 7",
                 [&] { root.at("n").integer(0, 3); });
  expect_corrupt("must be a whole number", [&] { root.at("big").integer(0, 3); });
  expect_corrupt("must be true or false", [&] { root.at("n").flag(); });
  expect_error(ErrorCode::unsupported, "f.json: n: 'Shout' is not supported",
               [&] { root.at("n").unsupported("Shout", "Lowercase"); });
}

TEST(JsonNode, ReadsOneCharacter) {
  const auto document = parse_json(R"(["▁", "ab", ""])", "f.json");
  const JsonNode root(document, "f.json");
  EXPECT_TRUE(root.at(size_t{0}).character() == U'▁');
  expect_error(ErrorCode::corrupt_file, "must be one character, got 'ab'",
               [&] { root.at(1).character(); });
  expect_error(ErrorCode::corrupt_file, "must be one character", [&] { root.at(2).character(); });
}

}  // namespace
}  // namespace heed
