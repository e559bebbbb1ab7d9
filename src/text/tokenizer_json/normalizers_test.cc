#include "text/tokenizer_json/normalizers.h"

#include <random>

#include "base/files/file_testing.h"
#include "text/unicode/charsmap.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

std::unique_ptr<Normalizer> make(const std::string& json) {
  const auto document = nlohmann::json::parse(json);
  return read_normalizer(JsonNode(document, "normalizer"));
}

std::string normalized(const std::string& json, std::string_view text) {
  AlignedText aligned(text, 0, true), plain(text, 0, false);
  const auto normalizer = make(json);
  normalizer->apply(aligned);
  normalizer->apply(plain);
  EXPECT_EQ(aligned.text, plain.text);
  EXPECT_EQ(aligned.sources.size(), aligned.text.size());
  return plain.text;
}

TEST(Normalizers, UnicodeForms) {
  EXPECT_EQ(normalized(R"({"type": "NFC"})", "e\u0301x ae\u0301"), "éx aé");
  EXPECT_EQ(normalized(R"({"type": "NFD"})", "é각"), "e\u0301\u1100\u1161\u11A8");
  EXPECT_EQ(normalized(R"({"type": "NFKC"})", "ﬁ①ｶﾞ x"), "fi1ガ x");
  EXPECT_EQ(normalized(R"({"type": "NFKD"})", "ﬁé"), "fie\u0301");
  // Marks are put in order, also across many of them.
  EXPECT_EQ(normalized(R"({"type": "NFC"})", "q\u0307\u0323"), "q\u0323\u0307");
}

TEST(Normalizers, MapsBytesToTheirSource) {
  AlignedText text("xe\u0301y", 10, true);
  make(R"({"type": "NFC"})")->apply(text);
  EXPECT_EQ(text.text, "xéy");
  EXPECT_EQ(text.source(0, 1), (TextSpan{10, 11}));
  EXPECT_EQ(text.source(1, 3), (TextSpan{11, 14}));
  EXPECT_EQ(text.source(3, 4), (TextSpan{14, 15}));
}

TEST(Normalizers, Simple) {
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "AbC"), "abc");
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "ÉİΣ"), "éi\u0307σ");
  EXPECT_EQ(normalized(R"({"type": "StripAccents"})", "e\u0301\u0903x"), "ex");
  EXPECT_EQ(normalized(R"({"type": "Strip"})", " \u00A0a b\n"), "a b");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": false})", " a "), " a");
  EXPECT_EQ(normalized(R"({"type": "Strip"})", "  "), "");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", "a"), "▁a");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", ""), "");
  EXPECT_EQ(normalized(R"({"type": "Nmt"})", "a\u200Bb\x01\tc\u2581"), "a b c ");
  EXPECT_EQ(normalized(R"({"type": "ByteLevel"})", " é"), "ĠÃ©");
}

TEST(Normalizers, Replace) {
  const std::string text = R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})";
  EXPECT_EQ(normalized(text, " a  b"), "▁a▁▁b");
  const std::string regex =
      R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "$1"})";
  EXPECT_EQ(normalized(regex, "a   b c"), "a$1b c");
}

TEST(Normalizers, Bert) {
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer"})", "Café\u0001\t中x\u00A0Ａ"),
            "cafe  中 x ａ");
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer", "lowercase": false})", "Café"), "Café");
  const std::string cased =
      R"({"type": "BertNormalizer", "lowercase": false, "strip_accents": true})";
  EXPECT_EQ(normalized(cased, "Café"), "Cafe");
  const std::string raw =
      R"({"type": "BertNormalizer", "clean_text": false, "handle_chinese_chars": false})";
  EXPECT_EQ(normalized(raw, "A\u0001\t中"), "a\u0001\t中");
  // U+D7FF is unassigned: the Rust library keeps it, Python's does not.
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer"})", "\uD7FFx"), "\uD7FFx");
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer", "drop_unassigned": true})", "\uD7FFx"), "x");
}

TEST(Normalizers, PrecompiledWithoutRulesChangesNothing) {
  EXPECT_EQ(normalized(R"({"type": "Precompiled", "precompiled_charsmap": ""})", "aé\r\n"),
            "aé\r\n");
}

TEST(Normalizers, Sequence) {
  EXPECT_EQ(normalized(R"({"type": "Sequence", "normalizers":
                           [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]})",
                       "CAFÉ"),
            "cafe");
}

TEST(Normalizers, RejectInvalidFiles) {
  expect_error(ErrorCode::unsupported, "'Shout' is not supported",
               [] { make(R"({"type": "Shout"})"); });
  expect_error(ErrorCode::corrupt_file, "'type' is missing", [] { make("{}"); });
  expect_error(ErrorCode::corrupt_file, "must be base64",
               [] { make(R"({"type": "Precompiled", "precompiled_charsmap": "?"})"); });
  std::string deep = R"({"type": "NFC"})";
  for (int i = 0; i < 40; ++i) deep = R"({"type": "Sequence", "normalizers": [)" + deep + "]}";
  expect_error(ErrorCode::corrupt_file, "must not be nested too deeply", [&] { make(deep); });
}

// For any bytes, each normalizer keeps invalid UTF-8 and maps every byte to its source.
TEST(Normalizers, AcceptAnyBytes) {
  std::mt19937 random(3);
  for (const char* type : {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip",
                           "Nmt", "BertNormalizer", "ByteLevel"}) {
    const std::string json = std::string(R"({"type": ")") + type + R"("})";
    for (int round = 0; round < 200; ++round) {
      std::string text(random() % 12, '\0');
      for (char& c : text) c = static_cast<char>(random());
      normalized(json, text);
    }
    EXPECT_NE(normalized(json, "a\xFF!").find(type == std::string("ByteLevel") ? "ÿ" : "\xFF"),
              std::string::npos)
        << type;
  }
}

}  // namespace
}  // namespace heed
