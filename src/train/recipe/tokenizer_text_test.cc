#include "train/recipe/tokenizer_text.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

using TokenizerTextTest = FolderTest;

TEST_F(TokenizerTextTest, PlainFilesAreReadAsTheyAre) {
  const std::vector<std::string> files{write("a.en", "one\n"), write("a.de", "eins\n")};
  const CorpusOptions corpus{.files = files};
  EXPECT_EQ(tokenizer_text({corpus, corpus}, Objective::translation, path("text")).files, files);
  EXPECT_FALSE(std::filesystem::exists(path("text")));
}

TEST_F(TokenizerTextTest, TakesTextsOutOfTables) {
  const auto text_of = [this](const CorpusOptions& corpus, Objective objective) {
    EXPECT_EQ(tokenizer_text({corpus}, objective, path("text")).files,
              std::vector<std::string>{path("text")});
    return read_text(path("text"));
  };
  write("pairs.tsv", "one\teins\t7\ntwo\tzwei\t8\n");
  EXPECT_EQ(
      text_of({.files = {path("pairs.tsv")}, .source_prefix = ">>de<< "}, Objective::translation),
      ">>de<< one\neins\n>>de<< two\nzwei\n");
  write("labelled.txt", "1 a good film\n0 a bad one\n");
  EXPECT_EQ(text_of({.files = {path("labelled.txt")}}, Objective::classification),
            "a good film\na bad one\n");
  write("tags.conllu",
        "# a comment\n"
        "1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n"
        "2\tcat\tcat\tNOUN\tNN\t_\t0\troot\t_\t_\n\n");
  EXPECT_EQ(text_of({.files = {path("tags.conllu")}}, Objective::tagging), "The cat\n");
  write("trees.mrg", "(S (NP (DT The) (NN cat)) (VP (VBD sat)))\n");
  EXPECT_THAT(text_of({.files = {path("trees.mrg")}}, Objective::parsing),
              testing::StartsWith("The cat sat\n(S (NP"));
  write("texts.jsonl", R"({"text": "two\nlines"})"
                       "\n");
  EXPECT_EQ(text_of({.files = {path("texts.jsonl")}}, Objective::causal_lm), "two lines\n");
}

TEST_F(TokenizerTextTest, SaysWhyThereIsNoText) {
  const auto text_of = [this](const std::string& csv) {
    const CorpusOptions corpus{
        .files = {write("a.csv", csv)}, .first_column = "text", .label_column = "gold"};
    return tokenizer_text({corpus}, Objective::classification, path("text"));
  };
  for (const char* empty : {"", "text,gold\n"}) {
    expect_error(ErrorCode::invalid_argument, "a.csv: must have examples, the file has none",
                 [&] { text_of(empty); });
  }
  expect_error(ErrorCode::invalid_argument,
               "a.csv: must have examples, all 2 were skipped: 2 malformed (first: " +
                   path("a.csv") + ":2: 1 columns, must have 2)",
               [&] { text_of("text,gold\na\nb\n"); });
  const auto some = text_of("text,gold\na,x\nb,y,z\n").skipped;
  ASSERT_EQ(some.size(), 1u);
  EXPECT_EQ(some[0].skipped(), "1 malformed (first: " + path("a.csv") +
                                   ":3: 3 columns, the header has 2: quote a text that contains "
                                   "a comma)");
}

}  // namespace
}  // namespace heed
