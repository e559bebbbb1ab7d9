#include "data/objectives/piece_splits.h"

#include <string>

#include "base/files/file_testing.h"
#include "data/batches/tokenizer_testing.h"
#include "heed/error.h"

namespace heed {
namespace {

using PieceSplitsFile = FolderTest;
using testing::ElementsAre;
using testing::HasSubstr;

// "unhappy" was merged from "un" and "##happy", and that from "##hap" and "##py", before "unhap"
// existed.
const TestingTokenizer& words() {
  static const TestingTokenizer tokenizer(
      {"u", "##n", "un", "##hap", "##py", "##happy", "unhappy", "unhap", "cat"});
  return tokenizer;
}

std::vector<int32_t> split(const std::string& text, double rate, uint64_t seed = 1) {
  Random random({.seed = seed});
  std::vector<int32_t> ids;
  PieceSplits(words()).append(words().encode_ids(text), rate, random, ids);
  Random again({.seed = seed});
  EXPECT_EQ(PieceSplits(words()).count(words().encode_ids(text), rate, again), std::ssize(ids));
  EXPECT_LE(std::ssize(ids), PieceSplits(words()).most(words().encode_ids(text)));
  return ids;
}

int32_t id(const char* piece) { return *words().find(piece); }

TEST(PieceSplits, ChangesNothingAtRateZero) {
  EXPECT_THAT(split("unhappy cat", 0),
              ElementsAre(id("unhappy"), id("cat"), TestingTokenizer::kEnd));
}

TEST(PieceSplits, UndoesTheMostProbableMerge) {
  EXPECT_THAT(split("unhappy cat", 1), ElementsAre(id("u"), id("##n"), id("##hap"), id("##py"),
                                                   id("cat"), TestingTokenizer::kEnd));
  const PieceSplits splits(words());
  std::vector<int32_t> most;
  splits.append_most(words().encode_ids("unhappy cat"), most);
  EXPECT_EQ(most, split("unhappy cat", 1));
  EXPECT_EQ(splits.most(words().encode_ids("unhappy cat")), 6);
}

TEST(PieceSplits, KeepsTheTextAndTheRate) {
  int taken_apart = 0;
  constexpr int kTexts = 2000;
  for (uint64_t seed = 0; seed < kTexts; ++seed) {
    const std::vector<int32_t> ids = split("unhappy", 0.25, seed);
    EXPECT_EQ(words().decode(ids), "unhappy");
    taken_apart += ids.size() > 2;
  }
  EXPECT_NEAR(taken_apart / double{kTexts}, 0.25, 0.04);
}

TEST(PieceSplits, KeepsSpecialTokens) {
  // Not even if the vocabulary has its parts.
  const TestingTokenizer tokenizer({"<", "##/s>", "ab", "a", "##b"});
  const PieceSplits splits(tokenizer);
  Random random({.seed = 1});
  std::vector<int32_t> ids;
  splits.append(std::vector<int32_t>{TestingTokenizer::kEnd}, 1, random, ids);
  EXPECT_THAT(ids, ElementsAre(TestingTokenizer::kEnd));
}

// Byte-level BPE of a text with headings: "##" is text there, and "xyz" was merged of "xy" and "z"
// after "##yz" was there.
TEST_F(PieceSplitsFile, KeepsTheTextWhereTheContinuationPrefixIsText) {
  write("tokenizer.json", R"({"model": {"type": "BPE",
    "vocab": {"#": 0, "x": 1, "y": 2, "z": 3, "##": 4, "##y": 5, "##yz": 6, "xy": 7, "xyz": 8},
    "merges": ["# #", "## y", "##y z", "x y", "xy z"]},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "decoder": {"type": "ByteLevel"}})");
  const TokenizerPtr tokenizer = load_tokenizer(folder_);
  for (const char* text : {"xyz", "##yz", "##yxyz"}) {
    const std::vector<int32_t> ids = tokenizer->encode_ids(text);
    Random random({.seed = 1});
    std::vector<int32_t> parts;
    PieceSplits(*tokenizer).append(ids, 1, random, parts);
    EXPECT_EQ(tokenizer->decode(parts), text);
    EXPECT_GT(parts.size(), ids.size()) << text;
  }
}

TEST(PieceSplits, RejectsTokenizersWithoutMerges) {
  const TestingTokenizer letters({"a", "b", "c"});
  try {
    const PieceSplits splits(letters);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(e.what(), HasSubstr("subword_dropout"));
  }
}

}  // namespace
}  // namespace heed
