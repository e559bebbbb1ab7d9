#include "text/trees/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/file_testing.h"
#include "base/philox.h"

namespace heed {
namespace {

using testing::ElementsAre;

constexpr const char* kJohn = "(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))";
// The example of Vinyals et al. 2015, figure 2, with the tags that its section 3 replaces by XX.
constexpr const char* kJohnLinear = "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S";

TEST(Tree, ReadsAndWritesBrackets) {
  const Tree tree = parse_tree(kJohn);
  EXPECT_EQ(tree.label, "S");
  EXPECT_THAT(words_of(tree), ElementsAre("John", "has", "a", "dog", "."));
  EXPECT_THAT(tags_of(tree), ElementsAre("NNP", "VBZ", "DT", "NN", "."));
  EXPECT_EQ(bracket_tree(tree), kJohn);
}

TEST(Tree, LinearFormIsThatOfThePaper) { EXPECT_EQ(linear_tree(parse_tree(kJohn)), kJohnLinear); }

TEST(Tree, RoundTripsThroughItsLinearForm) {
  const Tree tree = parse_tree(kJohn);
  const std::string tagged = linear_tree(tree, LinearWords::tags);
  EXPECT_EQ(tagged, "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S");
  EXPECT_EQ(tree_from_linear(tagged, words_of(tree)), tree);
  const std::string copied = linear_tree(tree, LinearWords::words);
  EXPECT_EQ(copied, "(S (NP John )NP (VP has (NP a dog )NP )VP . )S");
  EXPECT_EQ(bracket_tree(tree_from_linear(copied, words_of(tree))),
            "(S (NP (XX John)) (VP (XX has) (NP (XX a) (XX dog))) (XX .))");
  EXPECT_EQ(bracket_tree(tree_from_linear(kJohnLinear, words_of(tree))),
            "(S (NP (XX John)) (VP (XX has) (NP (XX a) (XX dog))) (XX .))");
}

TEST(Tree, CleansTracesFunctionTagsAndUnnamedRoots) {
  const Tree tree = parse_tree(
      "( (S (NP-SBJ-1 (NNP Savin)) (VP (VBD was) (VP (VBN sold) (NP (-NONE- *-1)))) (. .)) )");
  EXPECT_EQ(bracket_tree(*clean_tree(tree)),
            "(S (NP (NNP Savin)) (VP (VBD was) (VP (VBN sold))) (. .))");
  EXPECT_EQ(bracket_tree(*clean_tree(parse_tree("(PRN (-LRB- -LRB-) (NP=2 (CD 5)))"))),
            "(PRN (-LRB- -LRB-) (NP (CD 5)))");
  EXPECT_FALSE(clean_tree(parse_tree("( (NP (-NONE- *)) )")));
}

TEST(Tree, RejectsInvalidTrees) {
  for (const char* text : {"", "word", "(S", "(S (NP x)))", ")", "(S)", "(S a b)", "(S (A x) b)",
                           "(S (A x)) (S (B y))"}) {
    expect_error(ErrorCode::corrupt_file, "not a bracketed tree", [&] { parse_tree(text); });
  }
  const std::string deep(100000, '(');
  expect_error(ErrorCode::corrupt_file, "too deeply", [&] { parse_tree(deep); });
}

TEST(Tree, RepairsAnyModelOutput) {
  const std::vector<std::string> words{"a", "b", "c"};
  const auto back = [&](std::string_view linear) {
    return bracket_tree(tree_from_linear(linear, words));
  };
  EXPECT_EQ(back(""), "(S (XX a) (XX b) (XX c))");
  EXPECT_EQ(back("(NP XX"), "(NP (XX a) (XX b) (XX c))");                   // never closed
  EXPECT_EQ(back("(S (NP XX )NP XX )S"), "(S (NP (XX a)) (XX b) (XX c))");  // a skipped word
  EXPECT_EQ(back("(S XX XX XX XX )S"), "(S (XX a) (XX b) (XX c))");         // a surplus word
  EXPECT_EQ(back("(S XX )VP XX XX )S"), "(S (XX a) (XX b) (XX c))");        // closes nothing
  EXPECT_EQ(back("(S (NP XX (PP XX )NP XX )S"),                             // skips one closing
            "(S (NP (XX a) (PP (XX b))) (XX c))");
  EXPECT_EQ(back("(S (NP )NP XX XX XX )S"), "(S (XX a) (XX b) (XX c))");  // an empty phrase
  EXPECT_EQ(back("(NP XX )NP (VP XX XX )VP"), "(S (NP (XX a)) (VP (XX b) (XX c)))");  // two roots
  EXPECT_EQ(back("(NP a 7 \xC3\x84 )NP"), "(NP (XX a) (XX b) (XX c))");  // words, wrong ones too
  EXPECT_EQ(back("(S (NP a )NP (VP c )VP )S"), "(S (NP (XX a)) (VP (XX b) (XX c)))");  // without b
  EXPECT_EQ(back("(S (NP a a )NP (VP b c )VP )S"), "(S (NP (XX a)) (VP (XX b) (XX c)))");
  EXPECT_EQ(back("( S(NP XX)NP XX XX)S"), "(S (NP (XX a)) (XX b) (XX c))");  // odd spaces
}

// Any sequence of symbols gives a tree over exactly the words.
TEST(Tree, KeepsTheWordsForAnySymbols) {
  const char* symbols[] = {"(S ", ")S ", "(NP ", ")NP ", "XX ", "( ", ") ", "junk ", "b ", "d "};
  const std::vector<std::string> words{"a", "b", "c", "d", "e"};
  Random random({.seed = 7});
  for (int round = 0; round < 2000; ++round) {
    std::string linear;
    for (uint64_t n = random.below(20); n > 0; --n) linear += symbols[random.below(10)];
    const Tree tree = tree_from_linear(linear, words);
    ASSERT_EQ(words_of(tree), words) << linear;
    ASSERT_EQ(parse_tree(bracket_tree(tree)), tree) << linear;
  }
}

using TreeFile = FolderTest;

TEST_F(TreeFile, ReadsTreesOverSeveralLines) {
  write("a.mrg", "\n( (S\n  (NN a) ))\n\n(S (NN b))\n( (S (NN c)");
  LineReader reader(path("a.mrg"));
  std::string text;
  ASSERT_TRUE(next_tree_text(reader, text));
  EXPECT_EQ(bracket_tree(*clean_tree(parse_tree(text))), "(S (NN a))");
  ASSERT_TRUE(next_tree_text(reader, text));
  EXPECT_EQ(text, "(S (NN b))");
  ASSERT_TRUE(next_tree_text(reader, text));
  expect_error(ErrorCode::corrupt_file, "never closed", [&] { parse_tree(text); });
  EXPECT_FALSE(next_tree_text(reader, text));
}

TEST(Treebank, EveryTreeRoundTripsThroughItsLinearForm) {
  const std::string file = std::string(HEED_SHARED) + "/data/treebank/dev.mrg";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  LineReader reader(file);
  std::string text;
  int trees = 0;
  for (; next_tree_text(reader, text); ++trees) {
    const auto tree = clean_tree(parse_tree(text));
    ASSERT_TRUE(tree) << reader.where();
    ASSERT_EQ(tree_from_linear(linear_tree(*tree, LinearWords::tags), words_of(*tree)), *tree);
  }
  EXPECT_GT(trees, 200);
}

}  // namespace
}  // namespace heed
