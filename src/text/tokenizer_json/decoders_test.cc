#include "text/tokenizer_json/decoders.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

using Texts = std::vector<std::string>;

Texts decoded(const std::string& json, Texts pieces) {
  const auto document = nlohmann::json::parse(json);
  read_decoder(JsonNode(document, "decoder"))->apply(pieces);
  return pieces;
}

TEST(Decoders, ByteLevel) {
  EXPECT_EQ(decoded(R"({"type": "ByteLevel"})", {"Hi", "ĠÃ", "©", "東"}), (Texts{"Hi é東"}));
  EXPECT_EQ(decoded(R"({"type": "ByteLevel"})", {"Ã"}), (Texts{"\xC3"}));
}

TEST(Decoders, WordPiece) {
  const Texts pieces = {"##un", "##able", "do", "n't", ".", "'", "x"};
  EXPECT_EQ(decoded(R"({"type": "WordPiece", "cleanup": false})", pieces),
            (Texts{"##un", "able", " do", " n't", " .", " '", " x"}));
  EXPECT_EQ(decoded(R"({"type": "WordPiece"})", pieces),
            (Texts{"##un", "able", " do", "n't", ".", " '", " x"}));
}

TEST(Decoders, Metaspace) {
  EXPECT_EQ(decoded(R"({"type": "Metaspace"})", {"▁a▁", "▁b"}), (Texts{"a", " b"}));
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "prepend_scheme": "never"})", {"▁a"}), (Texts{" a"}));
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "add_prefix_space": false})", {"▁a"}), (Texts{" a"}));
}

TEST(Decoders, ByteFallback) {
  const std::string bad = "\uFFFD";
  const std::string json = R"({"type": "ByteFallback"})";
  EXPECT_EQ(decoded(json, {"<0xE5>", "<0x8f>", "<0xab>", "a"}), (Texts{"叫", "a"}));
  EXPECT_EQ(decoded(json, {"<0xE5>", "<0x8f>", "a"}), (Texts{bad, bad, "a"}));
  EXPECT_EQ(decoded(json, {"<0xZZ>", "<0x1>", "<0x6 >"}), (Texts{"<0xZZ>", "<0x1>", "<0x6 >"}));
}

TEST(Decoders, Others) {
  EXPECT_EQ(decoded(R"({"type": "Fuse"})", {"a", "b"}), (Texts{"ab"}));
  EXPECT_EQ(
      decoded(R"({"type": "Strip", "content": "H", "start": 1, "stop": 0})", {"Hey", "HHH", "a"}),
      (Texts{"ey", "HH", "a"}));
  EXPECT_EQ(decoded(R"({"type": "Strip", "content": "y", "start": 0, "stop": 2})", {"yyy", "y"}),
            (Texts{"y", ""}));
  EXPECT_EQ(decoded(R"({"type": "Replace", "pattern": {"String": "▁"}, "content": " "})", {"▁a"}),
            (Texts{" a"}));
  EXPECT_EQ(decoded(R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": "-"})", {"baab"}),
            (Texts{"b-b"}));
  EXPECT_EQ(decoded(R"({"type": "BPEDecoder"})", {"a</w>", "b</w>"}), (Texts{"a ", "b"}));
  EXPECT_EQ(decoded(R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
                        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
                    {" a", " b"}),
            (Texts{"a b"}));
}

TEST(Decoders, RejectInvalidFiles) {
  expect_error(ErrorCode::unsupported, "'CTC' is not supported",
               [] { decoded(R"({"type": "CTC"})", {}); });
  expect_error(ErrorCode::corrupt_file, "start: must be a whole number", [] {
    decoded(R"({"type": "Strip", "content": "x", "start": "1", "stop": 0})", {});
  });
}

}  // namespace
}  // namespace heed
