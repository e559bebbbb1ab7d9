#include "data/records/corpus_report.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(CorpusReport, NamesEveryReasonAndItsFirstPlace) {
  CorpusReport report{.name = "a.en", .read = 10, .kept = 7, .tokens = 90};
  report.count(Skip::too_long, "a.en:3");
  report.count(Skip::too_long, "a.en:5");
  report.count(Skip::empty, "a.en:9");
  EXPECT_EQ(report[Skip::too_long].count, 2);
  EXPECT_EQ(
      report.summary(),
      "a.en: 10 read, 7 kept, 90 tokens; 1 empty (first: a.en:9), 2 too_long (first: a.en:3)");
}

TEST(CorpusReport, OmitsReasonsWithoutExamples) {
  EXPECT_EQ((CorpusReport{.name = "a", .read = 1, .kept = 1, .tokens = 2}).summary(),
            "a: 1 read, 1 kept, 2 tokens");
}

}  // namespace
}  // namespace heed
