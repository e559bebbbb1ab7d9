#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "heed/error.h"
#include "heed/metrics.h"

namespace heed {
namespace {

constexpr const char* kFolder = HEED_TEST_DATA "/golden/evalb/";

std::string read_all(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Brackets, PrintsWhatEvalbPrints) {
  const std::string folder = kFolder;
  const BracketScore score =
      brackets(read_lines(folder + "sample.gld"), read_lines(folder + "sample.tst"),
               read_bracket_options(folder + "sample.prm"));
  EXPECT_EQ(score.text(), read_all(folder + "expected.txt"));
  EXPECT_EQ(score.all.errors, 5);
  EXPECT_EQ(score.sentences[11].problem, "words differ (is|was)");
  EXPECT_EQ(score.sentences[12].problem, "lengths differ (4|5)");
}

TEST(Brackets, UnlabeledComparesSpansOnly) {
  const std::vector<std::string> gold = {"(S (A (P x)) (B (Q y)))"};
  const std::vector<std::string> test = {"(S (C (P x)) (C (Q y)))"};
  EXPECT_EQ(brackets(gold, test).all.matched, 1);
  EXPECT_EQ(brackets(gold, test, {.labeled = false}).all.matched, 3);
}

TEST(Brackets, CleansTreesOfATreebank) {
  const std::vector<std::string> gold{
      "( (S (NP-SBJ-1 (NNP Savin)) (VP (VBD was) (VP (VBN sold) (NP (-NONE- *-1)))) (. .)) )"};
  const std::vector<std::string> parsed{"(S (NP (XX Savin)) (VP (XX was) (VP (XX sold))) (XX .))"};
  EXPECT_EQ(brackets(gold, parsed).sentences[0].status, BracketStatus::error);  // a word more
  const BracketScore score = brackets(gold, parsed, {.clean = true});
  EXPECT_EQ(score.sentences[0].status, BracketStatus::ok);
  EXPECT_EQ(score.all.f1, 100);
  EXPECT_EQ(score.all.matched, 4);
  // An invalid tree is still an error, and one without words counts as missing.
  EXPECT_EQ(brackets(gold, {"(S"}, {.clean = true}).all.errors, 1);
  EXPECT_EQ(brackets(gold, {"(S (-NONE- *))"}, {.clean = true}).all.skipped, 1);
}

TEST(Brackets, OneBracketMatchesOnce) {
  const BracketScore score = brackets({"(S (A (A (P x) (Q y))))"}, {"(S (A (P x) (Q y)))"});
  EXPECT_EQ(score.all.matched, 2);
  EXPECT_EQ(score.all.gold, 3);
}

TEST(Brackets, EquivalentLabelsMatchInOrder) {
  const BracketOptions options{.eq_label = {{"A", "B"}, {"B", "C"}}};
  // The gold A matches the first of B and A; the gold C can match the remaining one.
  EXPECT_EQ(brackets({"(S (A (C (P x))))"}, {"(S (B (A (P x))))"}, options).all.matched, 2);
  EXPECT_EQ(brackets({"(S (C (A (P x))))"}, {"(S (B (A (P x))))"}, options).all.matched, 3);
}

TEST(Brackets, DeepTreesAreAsFastAsWideOnes) {
  const int depth = 20000;  // EVALB's search would compare 400 million pairs
  std::string tree = "(P x)";
  std::string open, close;
  for (int i = 0; i < depth; ++i) open += i % 2 ? "(A " : "(B ", close += ")";
  tree = open + tree + close;
  const BracketScore score = brackets({tree}, {tree});
  EXPECT_EQ(score.all.matched, depth);
  EXPECT_EQ(score.all.crossing, 0);
}

TEST(Brackets, NoMatchIsZero) {
  const BracketScore score = brackets({"(A (P x) (Q y))"}, {"(B (P x) (Q y))"});
  EXPECT_EQ(score.all.f1, 0);
  EXPECT_NE(score.text().find("Bracketing FMeasure       =   0.00"), std::string::npos);
}

TEST(Brackets, RestoresAQuoteThatOneSideDeleted) {
  const BracketOptions options = {.delete_label = {"''"}, .quote_label = {"''", "POS"}};
  const std::vector<std::string> gold = {"(S (NP (N dogs) (POS ')) (VP (V ran)))"};
  const std::vector<std::string> test = {"(S (NP (N dogs) ('' ')) (VP (V ran)))"};
  const BracketScore score = brackets(gold, test, options);
  EXPECT_EQ(score.all.valid, 1);
  EXPECT_EQ(score.all.matched, 3);
  EXPECT_EQ(score.all.correct_tags, 2);
  EXPECT_EQ(brackets(test, gold, options).all.matched, 3);  // and the other way round
  EXPECT_EQ(brackets(gold, test, {.delete_label = {"''"}}).all.errors, 1);
}

TEST(Brackets, ADamagedTreeIsAnErrorOfOneSentence) {
  const BracketScore score = brackets({"(S (A a))", "(S (A a))"}, {"(S (A a", "(S (A a))"});
  EXPECT_EQ(score.all.errors, 1);
  EXPECT_EQ(score.all.valid, 1);
  EXPECT_NE(score.sentences[0].problem, "");
}

TEST(Brackets, ThrowsAfterTooManyErrors) {
  const std::vector<std::string> gold(12, "(S (A a))"), test(12, "(S (A b))");
  EXPECT_EQ(brackets(std::vector(gold.begin(), gold.begin() + 11),
                     std::vector(test.begin(), test.begin() + 11))
                .all.errors,
            11);
  EXPECT_THROW(brackets(gold, test), Error);
  EXPECT_EQ(brackets(gold, test, {.max_error = 100}).all.errors, 12);
}

TEST(Brackets, RejectsInvalidInput) {
  EXPECT_THROW(brackets({"(A a)"}, {}), Error);
  EXPECT_THROW(brackets({}, {}), Error);
}

TEST(BracketOptions, ReportsTheLineOfABadParameter) {
  const std::string path = testing::TempDir() + "heed_brackets_test.prm";
  const auto problem = [&path](const std::string& text) {
    std::ofstream(path) << text;
    try {
      read_bracket_options(path);
      return std::string();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::corrupt_file);
      return e.what() + (" | " + e.hint());
    }
  };
  EXPECT_EQ(problem("# fine\n\nLABELED 0  \nEQ_LABEL ADVP PRT\n"), "");
  EXPECT_EQ(problem("DELETE_LABELS X\n"),
            path + ":1: unknown parameter 'DELETE_LABELS' | did you mean 'DELETE_LABEL'?");
  EXPECT_EQ(problem("#\nEQ_LABEL X\n"), path + ":2: EQ_LABEL: must have 2 values, got 1 | ");
  EXPECT_EQ(problem("CUTOFF_LEN x\n"), path + ":1: CUTOFF_LEN: must be a whole number, got 'x' | ");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace heed
