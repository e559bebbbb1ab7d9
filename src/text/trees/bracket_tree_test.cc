#include "text/trees/bracket_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace heed {
namespace {

using testing::ElementsAre;

TEST(BracketTree, ReadsWordsAndBrackets) {
  const BracketTree tree = parse_bracket_tree("(S (NP (DT the) (NN dog)) (VP (VB ran)))", {});
  EXPECT_EQ(tree.problem, "");
  EXPECT_EQ(tree.length, 3);
  ASSERT_EQ(tree.words.size(), 3u);
  EXPECT_EQ(tree.words[1].word, "dog");
  EXPECT_EQ(tree.words[1].tag, "NN");
  ASSERT_EQ(tree.brackets.size(), 3u);
  EXPECT_EQ(tree.brackets[1].label, "NP");
  EXPECT_EQ(tree.brackets[1].start, 0);
  EXPECT_EQ(tree.brackets[1].end, 2);
}

TEST(BracketTree, AnOuterBracketNeedsNoLabel) {
  const BracketTree tree = parse_bracket_tree("( (S (NN x)))", {});
  EXPECT_EQ(tree.problem, "");
  ASSERT_EQ(tree.brackets.size(), 2u);
  EXPECT_EQ(tree.brackets[0].label, "");
}

TEST(BracketTree, DeletesWordsByTheirTag) {
  const BracketTree tree =
      parse_bracket_tree("(S (A a) (, ,) (-NONE- *))",
                         {.delete_label = {",", "-NONE-"}, .delete_label_for_length = {"-NONE-"}});
  EXPECT_EQ(tree.words.size(), 1u);
  EXPECT_EQ(tree.length, 2);
}

TEST(ReadTrees, OnePerLineOrOverSeveralLines) {
  const std::string path = testing::TempDir() + "heed_bracket_tree_test.mrg";
  const auto trees = [&path](const std::string& text) {
    std::ofstream(path) << text;
    return read_trees(path);
  };
  EXPECT_THAT(trees("(A a)\n\n (B b)\n"), ElementsAre("(A a)", "", " (B b)"));
  EXPECT_THAT(trees("(A a\n(B b)\n"),
              ElementsAre("(A a", "(B b)"));  // a damaged tree does not affect the next one
  EXPECT_THAT(trees("\n( (S\n    (A a)\n  (B b) ))\n\n( (S (C c)))\n"),
              ElementsAre("( (S    (A a)  (B b) ))", "( (S (C c)))"));
  std::filesystem::remove(path);
}

TEST(BracketTree, ReportsInvalidTrees) {
  for (const char* text : {"(S (A a)", "(S (A a)))", "S", "(A a b)", "(S (A a) b)", ")"}) {
    EXPECT_NE(parse_bracket_tree(text, {}).problem, "") << text;
  }
  EXPECT_EQ(parse_bracket_tree("", {}).problem, "");
}

}  // namespace
}  // namespace heed
