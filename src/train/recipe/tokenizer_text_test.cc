#include "train/recipe/tokenizer_text.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

using TokenizerText = FolderTest;

TEST_F(TokenizerText, PlainFilesAreReadAsTheyAre) {
  const std::vector<std::string> files{write("a.en", "one\n"), write("a.de", "eins\n")};
  const CorpusOptions corpus{.files = files};
  EXPECT_EQ(tokenizer_text({corpus, corpus}, Objective::translation, path("text")), files);
  EXPECT_FALSE(std::filesystem::exists(path("text")));
}

TEST_F(TokenizerText, TakesTextsOutOfTables) {
  const auto text_of = [this](const CorpusOptions& corpus, Objective objective) {
    EXPECT_EQ(tokenizer_text({corpus}, objective, path("text")),
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

}  // namespace
}  // namespace heed
