// That the measurements run and add up; never how fast anything is.
#include <gtest/gtest.h>

#include <string>

#include "bench/text_samples.h"
#include "heed/bench.h"
#include "heed/error.h"

namespace heed {
namespace {

TEST(BenchText, MeasuresItsOwnTokenizersOnItsOwnText) {
  int announced = 0;
  const TextBench bench = bench_text({.threads = 2,
                                      .seconds_per_row = 0.001,
                                      .progress = [&](std::string_view, int number, int rows) {
                                        EXPECT_EQ(number, ++announced);
                                        EXPECT_EQ(rows, 4);
                                      }});
  EXPECT_EQ(announced, 4);
  ASSERT_EQ(bench.rows.size(), 4U);
  EXPECT_GT(bench.bytes, 1000000);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(bench.rows[i].threads, i % 2 == 0 ? 1 : 2);
    EXPECT_GT(bench.rows[i].mb_per_second, 0);
    EXPECT_GT(bench.rows[i].mb_per_cpu_second, 0);
    EXPECT_GT(bench.rows[i].tokens, bench.lines);
    EXPECT_LT(bench.rows[i].tokens, bench.bytes);
  }
  EXPECT_EQ(bench.rows[0].tokens, bench.rows[1].tokens);
}

TEST(BenchText, MadeUpTextDependsOnTheSeedAlone) {
  EXPECT_EQ(bench::made_up_lines(1), bench::made_up_lines(1));
  EXPECT_NE(bench::made_up_lines(1), bench::made_up_lines(2));
  const std::vector<std::string> lines = {"the cat the", "Straße the"};
  EXPECT_EQ(bench::bpe_of(lines)->encode_ids("x the").size(), 2U);
  EXPECT_EQ(bench::wordpiece_of(lines)->encode_ids("The strasse!").size(), 9U);
}

TEST(BenchText, RefusesWhatIsNotThere) {
  EXPECT_THROW(bench_text({.file = "no/such/file"}), Error);
  EXPECT_THROW(bench_text({.tokenizers = {"no/such/tokenizer"}}), Error);
}

}  // namespace
}  // namespace heed
