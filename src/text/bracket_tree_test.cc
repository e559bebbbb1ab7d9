#include "text/bracket_tree.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

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

TEST(BracketTree, SaysWhatIsWrong) {
  for (const char* text : {"(S (A a)", "(S (A a)))", "S", "(A a b)", "(S (A a) b)", ")"}) {
    EXPECT_NE(parse_bracket_tree(text, {}).problem, "") << text;
  }
  EXPECT_EQ(parse_bracket_tree("", {}).problem, "");
}

}  // namespace
}  // namespace heed
