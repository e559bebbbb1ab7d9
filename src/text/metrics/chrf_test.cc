#include <gtest/gtest.h>

#include "heed/error.h"
#include "heed/metrics.h"

// The golden lines for chrF are in bleu_test.cc.
namespace heed {
namespace {

struct Case {
  std::string hypothesis, reference;
  double score;
};

// Values from sacreBLEU's tests, computed by chrF++.py.
TEST(Chrf, SmoothsWithEpsilonAsChrfPlusPlusPy) {
  const Case cases[] = {
      {"abcdefg", "hijklmnop", 0.0},
      {"", "reference", 0.0},
      {"aa", "ab", 8.3333},
      {"a", "a", 16.6667},
      {"a b c", "a b c", 50.0},
      {" risk assessment must be made of those who are qualified and expertise in the sector - "
       "these "
       "are the scientists .",
       "risk assessment has to be undertaken by those who are qualified and expert in that area - "
       "that is the scientists .",
       63.361730},
      {" Die    Beziehung zwischen  Obama und Netanjahu ist nicht gerade  freundlich. ",
       "Das Verhältnis zwischen Obama und Netanyahu ist nicht gerade freundschaftlich.",
       64.1302698},
  };
  for (const Case& c : cases) {
    EXPECT_NEAR(chrf({c.hypothesis}, {{c.reference}}, {.beta = 3, .eps_smoothing = true}).score,
                c.score, 1e-4)
        << c.hypothesis;
  }
}

TEST(Chrf, AveragesTheOrdersThatExist) {
  const Case cases[] = {
      {"a", "a", 100}, {"", "reference", 0}, {"a b c", "abc", 100}, {"aa", "ab", 25}};
  for (const Case& c : cases) {
    EXPECT_NEAR(chrf({c.hypothesis}, {{c.reference}}, {.beta = 3}).score, c.score, 1e-9);
  }
  EXPECT_NEAR(chrf({"a", "b"}, {{"a"}, {"c"}}, {.beta = 3}).score, 50, 1e-9);
}

TEST(Chrf, CountsWhitespaceIfRequested) {
  const ChrfScore score =
      chrf({"Die Beziehung zwischen Obama und Netanjahu ist nicht gerade freundlich."},
           {{"Das Verhältnis zwischen Obama und Netanyahu ist nicht gerade freundschaftlich."}},
           {.beta = 3, .whitespace = true});
  EXPECT_NEAR(score.score, 67.3481606, 1e-4);
  EXPECT_EQ(score.signature, "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:yes|version:2.6.0");
}

TEST(Chrf, ScoresSingleSentences) {
  EXPECT_NEAR(chrf({"Co nás nejvíc trápí, protože lékaři si vybírají, kdo bude žít a kdo zemře."},
                   {{"Nejvíce smutní jsme z toho, že musíme rozhodovat o tom, kdo bude žít a kdo "
                     "zemře."}},
                   {.eps_smoothing = true})
                  .score,
              39.14078509, 1e-4);
}

TEST(Chrf, SplitsOneMarkOffAWord) {
  // "(hi)" is "(hi" and ")", with which "hi)" shares only the ")".
  const ChrfOptions words = {.char_order = 0, .word_order = 1};
  EXPECT_NEAR(chrf({"(hi)"}, {{"hi)"}}, words).score, 50, 1e-9);
  EXPECT_NEAR(chrf({"\"hi"}, {{"hi \""}}, words).score, 100, 1e-9);
}

TEST(Chrf, TakesTheBestReference) { EXPECT_NEAR(chrf({"abc"}, {{"xyz", "abc"}}).score, 100, 1e-9); }

TEST(Chrf, NamesVariants) {
  EXPECT_EQ(chrf({"a"}, {{"a"}}).text(),
            "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 100.00");
  EXPECT_EQ(chrf({"a"}, {{"a"}}, {.word_order = 2}).name, "chrF2++");
  EXPECT_EQ(chrf({"a"}, {{"a"}}, {.beta = 1, .eps_smoothing = true}).signature,
            "nrefs:1|case:mixed|eff:no|nc:6|nw:0|space:no|version:2.6.0");
}

TEST(Chrf, RejectsInvalidOrders) {
  EXPECT_THROW(chrf({"a"}, {{"a"}}, {.char_order = 0}), Error);
  EXPECT_THROW(chrf({"a"}, {{"a"}}, {.char_order = -1}), Error);
  EXPECT_THROW(chrf({"a"}, {{"a"}, {"b"}}), Error);
}

}  // namespace
}  // namespace heed
