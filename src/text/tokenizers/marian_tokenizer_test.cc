#include "text/tokenizers/marian_tokenizer.h"

#include "base/files/file_testing.h"
#include "text/tokenizers/tokenizer_testing.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;

TEST(MarianTokenizer, EqualsOpusMt) { expect_golden(golden_tokenizer("marian-uk-en")); }

// Two small models of spm_train (tests/golden/tokenizers/README.md).
class SmallMarian : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    const std::string models = golden_tokenizer("spm-small");
    write("source.spm", read_text(models + "/unigram.model"));
    write("target.spm", read_text(models + "/bpe.model"));
    write("vocab.json", R"({"</s>": 0, "<unk>": 1, "▁": 2, "▁the": 3, "a": 4, ">>fra<<": 5,
                            "<pad>": 6})");
  }
};

TEST_F(SmallMarian, EncodesTheTargetLanguageAtTheStart) {
  const TokenizerPtr marian = load_tokenizer(folder_);
  EXPECT_EQ(marian->special_ids().pad, 6);
  EXPECT_EQ(marian->encode_ids(">>fra<< the"), (Ids{5, 3, 0}));
  EXPECT_EQ(marian->encode_ids("the >>fra<<the"), (Ids{3, 3, 0}));
  EXPECT_EQ(marian->encode_ids(">>xyz<< the"), (Ids{1, 3, 0}));
  EXPECT_EQ(marian->encode_ids(">><< the").back(), 0);
  const Encoding e = marian->encode(">>fra<< the </s>");
  EXPECT_EQ(e.ids, (Ids{5, 3, 0, 0}));
  EXPECT_EQ(e.offsets, (std::vector<TextSpan>{{0, 7}, {8, 11}, {12, 16}, {16, 16}}));
}

TEST_F(SmallMarian, SupportsSeparateVocabularies) {
  write("tokenizer_config.json", R"({"separate_vocabs": true})");
  write("target_vocab.json", R"({"</s>": 0, "<unk>": 1, "<pad>": 2, "▁the": 8})");
  const TokenizerPtr marian = load_tokenizer(folder_);
  EXPECT_EQ(marian->vocabulary_size(), 9);
  EXPECT_EQ(marian->encode_ids("the"), (Ids{3, 0}));
  EXPECT_EQ(marian->encode_ids("the", {.side = TextSide::target}), (Ids{8, 0}));
  EXPECT_EQ(marian->decode(Ids{8, 8, 0}), "the the");
  EXPECT_EQ(marian->decode(Ids{3, 0}, {.side = TextSide::source}), "the");
}

TEST_F(SmallMarian, ReadsNoFileOutsideItsFolder) {
  for (const char* file : {"/dev/zero", "../vocab.json", ".."}) {
    write("tokenizer_config.json",
          std::string(R"({"separate_vocabs": true, "target_vocab_file": ")") + file + "\"}");
    expect_error(ErrorCode::corrupt_file, "must be a file of this folder",
                 [this] { load_tokenizer(folder_); });
  }
}

TEST_F(SmallMarian, RoundTripsThroughAFolder) {
  load_tokenizer(folder_)->save(path("out"));
  EXPECT_EQ(load_tokenizer(path("out"))->encode_ids(">>fra<< the"), (Ids{5, 3, 0}));
}

TEST_F(SmallMarian, RejectsABadVocabulary) {
  const auto expect_rejected = [this](const std::string& vocabulary, const std::string& message) {
    write("vocab.json", vocabulary);
    expect_error(ErrorCode::corrupt_file, message, [this] { load_tokenizer(folder_); });
  };
  expect_rejected("{", "vocab.json is not JSON");
  expect_rejected("[]", "must be an object");
  expect_rejected(R"({"</s>": 0, "<unk>": 0})", "two tokens have the id 0");
  expect_rejected(R"({"</s>": -1})", "whole numbers");
  expect_rejected(R"({"</s>": 4000000000})", "whole numbers");
  expect_rejected(R"({"</s>": 0, "<unk>": 1})", "must have <pad>");
}

}  // namespace
}  // namespace heed
