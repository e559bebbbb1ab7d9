#include "text/tokenizers/spiece_tokenizer.h"

#include <sstream>

#include "base/files/file_testing.h"
#include "text/tokenizers/tokenizer_testing.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;

const std::string kSmall = golden_tokenizer("spm-small") + "/";

std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream text(read_text(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

template <class T>
std::vector<T> words_of(const std::string& line) {
  std::istringstream text(line);
  std::vector<T> words;
  for (T word; text >> word;) words.push_back(word);
  return words;
}

TEST(SpieceTokenizer, EqualsT5) { expect_golden(golden_tokenizer("t5-spiece")); }

TEST(SpieceTokenizer, EqualsSpmEncode) {
  const std::vector<std::string> lines = lines_of(kSmall + "lines.txt");
  ASSERT_GT(lines.size(), 10u);
  for (const std::string model : {"bpe", "unigram"}) {
    const TokenizerPtr plain = load_tokenizer(kSmall + model + ".model");
    const std::vector<std::string> ids = lines_of(kSmall + model + ".ids");
    const std::vector<std::string> decoded = lines_of(kSmall + model + ".decoded");
    for (size_t i = 0; i < lines.size(); ++i) {
      const Ids expected = words_of<int32_t>(ids.at(i));
      EXPECT_EQ(plain->encode_ids(lines[i]), expected) << model << ": " << lines[i];
      EXPECT_EQ(plain->decode(expected), decoded.at(i)) << model;
      expect_good_offsets(*plain, lines[i]);
    }
  }
}

TEST(SpieceTokenizer, ReturnsOffsets) {
  const TokenizerPtr plain = load_tokenizer(kSmall + "unigram.model");
  const std::string text = " the é\xff<sep>ﬁt";
  const Encoding e = plain->encode(text);
  std::string shown;
  for (size_t i = 0; i < e.ids.size(); ++i) {
    shown += plain->piece(e.ids[i]) + "=" + std::to_string(e.offsets[i].begin) + "-" +
             std::to_string(e.offsets[i].end) + " ";
  }
  EXPECT_EQ(shown, "▁the=1-4 ▁=4-5 <unk>=5-8 <sep>=8-13 f=13-13 it=13-17 ");
}

class SpieceFolder : public FolderTest {
 protected:
  TokenizerPtr load(const std::string& model, const std::string& name, const std::string& config) {
    write(name, read_text(kSmall + model + ".model"));
    write("tokenizer_config.json", config);
    return load_tokenizer(folder_);
  }
};

TEST_F(SpieceFolder, T5HasSentinelsInDescendingOrder) {
  const TokenizerPtr t5 =
      load("unigram", "spiece.model", R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 3})");
  EXPECT_EQ(t5->vocabulary_size(), 303);
  EXPECT_EQ(t5->find("<extra_id_0>"), 302);
  EXPECT_EQ(t5->find("<extra_id_2>"), 300);
  EXPECT_EQ(t5->special_ids().pad, 0);
  EXPECT_EQ(t5->special_ids().end, 1);
  EXPECT_EQ(t5->special_ids().unknown, 2);
  const int32_t the = t5->find("▁the").value();
  // A sentinel strips the space after it: what follows does not begin a word.
  const int32_t th = t5->find("th").value(), e = t5->find("e").value();
  EXPECT_EQ(t5->encode_ids("the <extra_id_0> the"), (Ids{the, 302, th, e, 1}));
  EXPECT_EQ(t5->encode_ids("<extra_id_1></s>"), (Ids{301, 1}));
  EXPECT_EQ(t5->decode(Ids{the, 302, the, 1}, {.skip_special_tokens = false}),
            "the <extra_id_0> the</s>");
  EXPECT_EQ(t5->encode_pair("the", "the").ids, (Ids{the, 1, the, 1}));
  EXPECT_TRUE(t5->begins_word(the));
}

TEST_F(SpieceFolder, LlamaBeginsWithS) {
  const TokenizerPtr llama =
      load("bpe", "tokenizer.model", R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})");
  const int32_t the = llama->find("▁the").value();
  EXPECT_EQ(llama->encode_ids("the the"), (Ids{1, the, the}));
  EXPECT_EQ(llama->encode_pair("the", "the").ids, (Ids{1, the, 1, the}));
  EXPECT_EQ(llama->decode(Ids{1, the, the}), "the the");
  // Byte fallback.
  const Ids snowman = llama->encode_ids("☃", {.special_tokens = false});
  ASSERT_EQ(snowman.size(), 4u);
  EXPECT_EQ(llama->piece(snowman[1]), "<0xE2>");
  EXPECT_EQ(llama->decode(snowman), "☃");
  // Not legacy: no space is inserted after a special token.
  const Ids after = llama->encode_ids("</s>the", {.special_tokens = false});
  EXPECT_EQ(after[0], 2);
  EXPECT_NE(after[1], the);
  const TokenizerPtr legacy = load("bpe", "tokenizer.model", R"({"legacy": true,
      "add_bos_token": false, "add_eos_token": true})");
  EXPECT_EQ(legacy->encode_ids("</s>the"), (Ids{2, the, 2}));
}

TEST_F(SpieceFolder, XlmRobertaHasFairseqIds) {
  const TokenizerPtr xlmr = load("bpe", "sentencepiece.bpe.model", "{}");
  const TokenizerPtr plain = load_tokenizer(kSmall + "bpe.model");
  EXPECT_EQ(xlmr->vocabulary_size(), plain->vocabulary_size() + 2);
  EXPECT_EQ(xlmr->special_ids().mask, xlmr->vocabulary_size() - 1);
  const int32_t the = plain->find("▁the").value() + 1;
  EXPECT_EQ(xlmr->encode_ids("the <mask>"), (Ids{0, the, xlmr->special_ids().mask, 2}));
  EXPECT_EQ(xlmr->encode_pair("the", "the").ids, (Ids{0, the, 2, 2, the, 2}));
  EXPECT_EQ(xlmr->decode(Ids{0, the, the, 2}), "the the");
}

TEST_F(SpieceFolder, AnEmptyNameIsNoToken) {
  const TokenizerPtr xlmr = load("bpe", "sentencepiece.bpe.model",
                                 R"({"bos_token": "", "eos_token": "", "unk_token": ""})");
  const Ids ids = xlmr->encode_pair("the \xE2\x98\x83", "the").ids;
  EXPECT_FALSE(ids.empty());
  for (const int32_t id : ids) EXPECT_GE(id, 0);
  // T5 and Llama prepend the unknown token to a text that begins with a space.
  const TokenizerPtr named = load("unigram", "spiece.model", R"({"extra_ids": 0})");
  const TokenizerPtr t5 = load("unigram", "spiece.model", R"({"extra_ids": 0, "unk_token": ""})");
  EXPECT_EQ(t5->special_ids().unknown, -1);
  for (const char* text : {" the", "the", "\xE2\x98\x83 the"}) {
    EXPECT_EQ(t5->encode_ids(text), named->encode_ids(text)) << text;
  }
}

// The maximum number of sentinels.
TEST_F(SpieceFolder, LoadsManySentinelsInLinearTime) {
  const TokenizerPtr t5 =
      load("unigram", "spiece.model", R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 65536})");
  EXPECT_EQ(t5->find("<extra_id_0>"), t5->vocabulary_size() - 1);
}

TEST_F(SpieceFolder, PegasusOffsetsItsPieces) {
  const TokenizerPtr pegasus =
      load("unigram", "spiece.model", R"({"tokenizer_class": "PegasusTokenizer"})");
  const TokenizerPtr plain = load_tokenizer(kSmall + "unigram.model");
  EXPECT_EQ(pegasus->special_ids().unknown, 105);
  const int32_t the = plain->find("▁the").value() + 103;
  EXPECT_EQ(pegasus->encode_ids("the"), (Ids{the, 1}));
  EXPECT_EQ(pegasus->find("<mask_2>"), 3);
}

TEST_F(SpieceFolder, ReadsAddedTokens) {
  const TokenizerPtr llama = load("bpe", "tokenizer.model", R"({"added_tokens_decoder": {
      "700": {"content": "<a>", "lstrip": true, "special": true},
      "702": {"content": "<b>", "special": false}}})");
  EXPECT_EQ(llama->vocabulary_size(), 703);
  EXPECT_EQ(llama->encode_ids("<b> <a>", {.special_tokens = false}), (Ids{702, 700}));
  EXPECT_EQ(llama->decode(Ids{702, 700}), "<b>");
}

TEST_F(SpieceFolder, RoundTripsThroughAFolder) {
  const TokenizerPtr t5 =
      load("unigram", "spiece.model", R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 3})");
  t5->save(path("out"));
  EXPECT_EQ(load_tokenizer(path("out"))->encode_ids("the king"), t5->encode_ids("the king"));
}

TEST_F(SpieceFolder, RejectsUnknownClasses) {
  expect_error(ErrorCode::unsupported, "XLNetTokenizer", [this] {
    load("unigram", "spiece.model", R"({"tokenizer_class": "XLNetTokenizer"})");
  });
  for (const char* number : {"-2", "65537", "18446744073709551615"}) {
    expect_error(ErrorCode::corrupt_file, "extra_ids", [&] {
      load("unigram", "spiece.model", R"({"extra_ids": )" + std::string(number) + "}");
    });
  }
  expect_error(ErrorCode::corrupt_file, "must be near the vocabulary", [this] {
    load("bpe", "tokenizer.model", R"({"added_tokens_decoder": {"900000000": "<a>"}})");
  });
}

}  // namespace
}  // namespace heed
