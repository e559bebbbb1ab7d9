#include "heed/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "heed/error.h"

namespace heed {
namespace {

constexpr const char* kFolder = HEED_TEST_DATA "/golden/bleu/";

struct GoldenSet {
  std::vector<std::string> hypotheses;
  References references;
};

GoldenSet read_set(const std::string& name) {
  std::vector<std::vector<std::string>> files = {read_lines(kFolder + name + ".ref0")};
  const bool two = name == "two-refs-en" || name == "tiny";
  if (two) files.push_back(read_lines(kFolder + name + ".ref1"));
  return {read_lines(kFolder + name + ".hyp"), as_references(files)};
}

// Every line of expected.jsonl, computed by sacreBLEU 2.6.0: BLEU, chrF, TER and sentence BLEU.
TEST(Bleu, EqualsSacrebleuOnEveryGoldenLine) {
  int lines = 0;
  for (const std::string& line : read_lines(kFolder + std::string("expected.jsonl"))) {
    SCOPED_TRACE(line);
    const auto expected = nlohmann::json::parse(line);
    const GoldenSet set = read_set(expected["set"]);
    const std::string metric = expected["metric"];
    if (metric == "bleu") {
      const BleuScore score = bleu(set.hypotheses, set.references,
                                   {.tokenize = expected["tokenize"],
                                    .smooth = expected["smooth"],
                                    .lowercase = expected["lowercase"]});
      EXPECT_NEAR(score.score, expected["score"], 1e-9);
      EXPECT_THAT(score.precisions,
                  testing::Pointwise(testing::DoubleNear(1e-9),
                                     std::vector<double>(expected["precisions"])));
      EXPECT_NEAR(score.bp, expected["bp"], 1e-12);
      EXPECT_EQ(score.sys_len, expected["sys_len"]);
      EXPECT_EQ(score.ref_len, expected["ref_len"]);
      EXPECT_EQ(score.signature, expected["signature"]);
    } else if (metric == "chrf") {
      const ChrfScore score =
          chrf(set.hypotheses, set.references,
               {.word_order = expected["word_order"], .lowercase = expected["lowercase"]});
      EXPECT_NEAR(score.score, expected["score"], 1e-9);
      EXPECT_EQ(score.signature, expected["signature"]);
    } else if (metric == "ter") {
      const TerScore score = ter(set.hypotheses, set.references);
      EXPECT_NEAR(score.score, expected["score"], 1e-9);
      EXPECT_EQ(score.signature, expected["signature"]);
    } else {
      ASSERT_EQ(metric, "sentence-bleu");
      const std::vector<double> scores = expected["first20"];
      for (size_t i = 0; i < scores.size(); ++i) {
        EXPECT_NEAR(sentence_bleu(set.hypotheses[i], set.references[i]).score, scores[i], 1e-9);
      }
    }
    ++lines;
  }
  EXPECT_EQ(lines, 88);
}

// sacreBLEU's example of smoothing, from its issue 98.
TEST(Bleu, SmoothsSentencesAsSacrebleu) {
  const std::string reference = "producţia de zahăr brut se exprimă în zahăr alb;";
  const std::string hypothesis =
      "Producția de zahăr primă va fi exprimată în ceea ce privește zahărul alb;";
  const auto score = [&](const BleuOptions& options) {
    return sentence_bleu(hypothesis, {reference}, options).score;
  };
  EXPECT_NEAR(score({}), 8.493, 1e-3);
  EXPECT_EQ(score({.smooth = "none"}), 0);
  EXPECT_NEAR(score({.smooth = "floor"}), 4.51688, 1e-3);
  EXPECT_NEAR(score({.smooth = "floor", .smooth_value = 0.5}), 10.10, 1e-2);
  EXPECT_NEAR(score({.smooth = "add-k"}), 14.882, 1e-3);
  EXPECT_NEAR(score({.smooth = "add-k", .smooth_value = 2}), 21.389, 1e-3);
  EXPECT_NEAR(score({.tokenize = "none"}), 7.347, 1e-3);
  EXPECT_NEAR(score({.tokenize = "char"}), 40.8759, 1e-3);
  EXPECT_NEAR(score({.tokenize = "char", .lowercase = true}), 42.0267, 1e-3);
}

TEST(Bleu, NoMatchIsZeroWithAnySmoothing) {
  for (const char* smooth : {"exp", "floor", "add-k", "none"}) {
    EXPECT_EQ(sentence_bleu("this is a cat", {"okay thanks"}, {.smooth = smooth}).score, 0);
  }
}

TEST(Bleu, EmptyHypothesesCount) {
  const BleuScore score = bleu({"", "a b c d"}, {{"x y"}, {"a b c d"}});
  EXPECT_EQ(score.sys_len, 4);
  EXPECT_EQ(score.ref_len, 6);
  EXPECT_DOUBLE_EQ(score.bp, std::exp(1 - 6.0 / 4));
  EXPECT_NEAR(score.score, 100 * score.bp, 1e-9);
  EXPECT_EQ(bleu({""}, {{"x"}}).bp, 0);
}

TEST(Bleu, OfTwoEquallyCloseLengthsTakesTheShorter) {
  EXPECT_EQ(bleu({"a b c"}, {{"a b c d", "a b"}}).ref_len, 2);
}

TEST(Bleu, ClipsToTheMaximumCountOverReferences) {
  const BleuScore score = bleu({"a a a b"}, {{"a a c d", "b a e f"}}, {.tokenize = "none"});
  EXPECT_DOUBLE_EQ(score.precisions[0], 75);  // a twice, b once
}

TEST(Bleu, SignatureSaysThatReferencesVary) {
  const BleuScore score = bleu({"a", "b"}, {{"a"}, {"b", "c"}});
  EXPECT_EQ(score.signature, "nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
  EXPECT_EQ(sentence_bleu("a", {"a"}).signature,
            "nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:2.6.0");
}

TEST(Bleu, PrintsTheLineOfSacrebleu) {
  const GoldenSet set = read_set("flores-de");
  EXPECT_EQ(bleu(set.hypotheses, set.references).text(),
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 40.65 "
            "70.2/47.7/35.1/26.4 (BP = 0.968 ratio = 0.969 hyp_len = 7085 ref_len = 7315)");
}

TEST(Bleu, CountsHypothesesThatLookTokenized) {
  EXPECT_EQ(bleu({"a .", "b.", "c ."}, {{"a"}, {"b"}, {"c"}}).tokenized_lines, 2);
}

TEST(Bleu, AcceptsAnyBytes) {
  const std::string bytes = "\xff\xfe a \xe4\xb8 b";
  for (const char* tokenize : {"13a", "intl", "zh", "char", "none"}) {
    const BleuScore score = bleu({bytes}, {{bytes}}, {.tokenize = tokenize, .lowercase = true});
    EXPECT_NEAR(score.precisions[0], 100, 1e-9) << tokenize;
  }
}

TEST(Bleu, RejectsInvalidInput) {
  EXPECT_THROW(bleu({"a"}, {{"a"}, {"b"}}), Error);
  EXPECT_THROW(bleu({}, {}), Error);
  EXPECT_THROW(bleu({"a"}, {{}}), Error);
  EXPECT_THROW(bleu({"a"}, {{"a"}}, {.tokenize = "14a"}), Error);
  EXPECT_THROW(bleu({"a"}, {{"a"}}, {.smooth = "flor"}), Error);
  EXPECT_THROW(bleu({"a"}, {{"a"}}, {.smooth = "exp", .smooth_value = 1}), Error);
  EXPECT_THROW(bleu({"a"}, {{"a"}}, {.smooth = "floor", .smooth_value = -1}), Error);
  EXPECT_THROW(bleu({"a"}, {{"a"}}, {.max_order = 0}), Error);
}

}  // namespace
}  // namespace heed
