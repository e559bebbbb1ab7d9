#include "text/tokenizers/spiece_proto.h"

#include <cstring>

#include "base/files/file_testing.h"
#include "text/tokenizers/spiece_model.h"

namespace heed {
namespace {

std::string field(int number, const std::string& bytes) {
  std::string text;
  text += static_cast<char>(number << 3 | 2);
  text += static_cast<char>(bytes.size());
  return text += bytes;
}

std::string piece(const std::string& text, int type = 1, float score = -1) {
  std::string real(4, '\0');
  std::memcpy(real.data(), &score, 4);
  std::string fields = field(1, text);
  fields += '\x15';
  fields += real;
  fields += '\x18';
  fields += static_cast<char>(type);
  return field(1, fields);
}

const std::string kUnknown = piece("<unk>", 2);
const std::string kModel = kUnknown + piece("▁a") + piece("b");

void expect_rejected(const std::string& bytes, const std::string& why) {
  expect_error(ErrorCode::corrupt_file, "x.model is not a SentencePiece model: " + why,
               [&] { read_spiece_proto(bytes, "x.model"); });
}

TEST(SpieceProto, ReadsPieces) {
  const SpieceProto proto = read_spiece_proto(kModel, "x.model");
  ASSERT_EQ(proto.pieces.size(), 3u);
  EXPECT_EQ(proto.pieces[0].type, PieceType::unknown);
  EXPECT_EQ(proto.pieces[1].text, "▁a");
  EXPECT_EQ(proto.pieces[2].score, -1);
  EXPECT_EQ(SpieceModel(kModel, "x.model").encode_ids("ab"), (std::vector<int>{1, 2}));
}

TEST(SpieceProto, RejectsBadPieces) {
  expect_rejected("", "it has no pieces");
  expect_rejected(piece("a"), "must have one unknown piece, got 0");
  expect_rejected(kModel + piece("<other>", 2), "must have one unknown piece, got 2");
  expect_rejected(kUnknown, "it has no pieces of text");
  expect_rejected(kModel + piece(""), "a piece must not be empty");
  expect_rejected(kModel + piece("b"), "pieces must be unique");
  expect_rejected(kModel + piece("c", 7), "a piece has an unknown type");
  expect_rejected(kModel + piece("c", 1, NAN), "a piece's score must be a finite number");
  expect_rejected(kModel + piece("\xff"), "a piece must be UTF-8");
  expect_rejected(kModel + piece(std::string("c\0d", 3)), "a piece must not have a NUL byte");
  expect_rejected(kModel + piece("<0x41>", 6), "must have no byte pieces, got 1");
  expect_rejected(kModel + field(2, std::string("\x98\x02\x01", 3)),
                  "must have 256 byte pieces, got 0");
  expect_rejected(kModel + piece("<0xG1>", 6), "a byte piece must name a byte");
}

TEST(SpieceProto, RejectsBrokenWireFormat) {
  for (size_t length = 1; length < kModel.size(); ++length) {
    try {  // cut at the end of a piece, it is a valid shorter model
      read_spiece_proto(kModel.substr(0, length), "x.model");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt_file);
    }
  }
  expect_rejected("\x0b", "a field has an unknown wire type");
  expect_rejected(std::string("\x02\x00", 2), "a field has the number 0");
  expect_rejected(
      "\x0a\x05"
      "abc",
      "it is truncated");
  expect_rejected("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                  "a number must not exceed 64 bits");
  expect_rejected("\x08\x01", "a field has the wrong type");
}

// A double array of 256 units whose root leads byte 'a' to unit 97 and that to a replacement.
std::string charsmap(uint32_t leaf_value, uint32_t offset_of_a) {
  std::vector<uint32_t> units(512);
  units[0] = 0;                                    // offset 0: 'a' is at 0 ^ 'a'
  units['a'] = 'a' | 1U << 8 | offset_of_a << 10;  // has a value, at 'a' ^ offset
  const size_t leaf = 'a' ^ offset_of_a;
  if (leaf < units.size()) units[leaf] = leaf_value | 1U << 31;
  const auto bytes = static_cast<uint32_t>(units.size() * 4);
  std::string map(4, '\0');
  std::memcpy(map.data(), &bytes, 4);
  map.append(reinterpret_cast<const char*>(units.data()), bytes);
  return map + std::string("bb\0", 3);
}

std::string with_rules(const std::string& map) {
  const auto varint = [](size_t n) {
    std::string text;
    for (; n >= 0x80; n >>= 7) text += static_cast<char>(n | 0x80);
    return text + static_cast<char>(n);
  };
  std::string spec(1, '\x12');
  spec += varint(map.size());
  spec += map;
  std::string model = kModel + '\x1a';
  model += varint(spec.size());
  return model += spec;
}

TEST(SpieceProto, ChecksNormalizationRules) {
  const std::string good = with_rules(charsmap(0, 256));
  EXPECT_EQ(SpieceModel(good, "x.model").encode_ids("a").size(), 3u);  // ▁ (unknown), b, b
  expect_rejected(with_rules(charsmap(3, 256)), "a normalization rule has no replacement");
  expect_rejected(with_rules(charsmap(0, 512)), "its normalization rules point outside the table");
  expect_rejected(with_rules(charsmap(0, 256).substr(0, 2000)),
                  "its normalization rules have no table");
  expect_rejected(with_rules("abc"), "its normalization rules are truncated");
  std::string unended = charsmap(0, 256);
  unended.back() = 'b';
  expect_rejected(with_rules(unended), "the replacements of its normalization rules must be UTF-8");
}

// Real models with a few changed bytes: rejected, or usable.
TEST(SpieceProto, AcceptsOrRejectsDamagedModels) {
  uint64_t state = 1;  // the seed
  const auto random = [&state](uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  int refused = 0, used = 0;
  for (const std::string name : {"bpe", "unigram"}) {
    const std::string good = read_text(kGoldenFolder + "tokenizers/spm-small/" + name + ".model");
    for (int round = 0; round < 400; ++round) {
      std::string bad = good;
      for (uint64_t n = 1 + random(3); n > 0; --n) {
        bad[random(bad.size())] = static_cast<char>(random(256));
      }
      try {
        const SpieceModel model(bad, "bad.model");
        for (const std::string text : {" the ﬁrst <sep> é", "\xff", ""}) {
          for (const SpieceModel::Token& token : model.encode(text)) {
            ASSERT_LT(token.id, model.size());
            ASSERT_LE(token.end, text.size());
          }
        }
        ++used;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::corrupt_file) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(used, 50);
}

TEST(SpieceProto, RemovesTheDummyPrefix) {
  const SpieceModel with(kModel, "x"), without(without_dummy_prefix(kModel), "x");
  EXPECT_EQ(with.encode("b").size(), 2u);
  EXPECT_EQ(without.encode("b").size(), 1u);
}

}  // namespace
}  // namespace heed
