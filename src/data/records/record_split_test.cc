#include "data/records/record_split.h"

#include "base/files/file_testing.h"
#include "data/records/record_reader.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

class RecordSplitTest : public FolderTest {
 protected:
  CorpusSplit split(const CorpusOptions& corpus, Objective objective, double share) {
    return split_corpus(corpus, objective, {}, share, folder_);
  }
  // The parts' texts, in the order training, validation; of two files those of the source first.
  std::vector<std::string> texts(const CorpusSplit& split) {
    std::vector<std::string> list;
    for (const std::string& file : split.training.files) list.push_back(read_text(file));
    for (const std::string& file : split.validation.files) list.push_back(read_text(file));
    return list;
  }
};

TEST_F(RecordSplitTest, SplitsATextByLinesParagraphsOrCharacters) {
  write("a.txt", "one\ntwo\nthree\n");
  write("b.txt", "four\nfive\n");
  EXPECT_THAT(texts(split({.files = {path("a.txt"), path("b.txt")}}, Objective::causal_lm, 0.4)),
              ElementsAre("one\ntwo\nthree\n", "four\nfive\n"));
  write("p.txt", "one\ntwo\n\n\nthree\nfour\n");
  const CorpusOptions paragraphs{.files = {path("p.txt")}, .unit = TextUnit::paragraph};
  EXPECT_THAT(texts(split(paragraphs, Objective::masked_lm, 0.2)),
              ElementsAre("one\ntwo\n\n", "three\nfour\n\n"));
  // Never inside a character.
  write("c.txt", "abäöüxyz\n");  // ä at bytes 2 and 3: 0.75 of 12 bytes would cut at 3
  const CorpusOptions whole{.files = {path("c.txt")}, .unit = TextUnit::file};
  EXPECT_THAT(texts(split(whole, Objective::causal_lm, 0.75)), ElementsAre("ab", "äöüxyz\n"));
  expect_error(ErrorCode::invalid_argument, "both parts",
               [&] { split({.files = {path("c.txt")}}, Objective::causal_lm, 0.5); });
}

TEST_F(RecordSplitTest, KeepsTheFormatAndTheHeader) {
  write("a.tsv", "text\tlabel\ngood\tpos\nbad\tneg\n");
  write("b.tsv", "text\tlabel\nfine\tpos\n");
  CorpusOptions corpus{.files = {path("a.tsv"), path("b.tsv")}, .label_column = "label"};
  const CorpusSplit named = split(corpus, Objective::classification, 0.3);
  EXPECT_THAT(texts(named),
              ElementsAre("text\tlabel\ngood\tpos\nbad\tneg\n", "text\tlabel\nfine\tpos\n"));
  EXPECT_THAT(named.training.files[0], EndsWith(".tsv"));
  EXPECT_EQ(named.validation.format, CorpusFormat::tsv);
  const auto reader = open_records(named.validation, Objective::classification);
  Record record;
  ASSERT_TRUE(reader->next(record));
  EXPECT_EQ(record.label, "pos");
  // Numbered columns: there is no header.
  corpus.label_column = "2";
  EXPECT_THAT(texts(split(corpus, Objective::classification, 0.5)),
              ElementsAre("text\tlabel\ngood\tpos\n", "bad\tneg\ntext\tlabel\nfine\tpos\n"));
  // The extension is in the middle of the name: the parts keep the format.
  write("x.jsonl.part", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  const CorpusSplit odd = split({.files = {path("x.jsonl.part")}}, Objective::causal_lm, 0.5);
  EXPECT_EQ(format_of(odd.training, Objective::causal_lm), CorpusFormat::jsonl);
}

TEST_F(RecordSplitTest, KeepsRecordsOfSeveralLinesWhole) {
  write("a.csv", "\"one\ntwo\",x\n\"three\nfour\nfive\",y\n");
  EXPECT_THAT(texts(split({.files = {path("a.csv")}}, Objective::classification, 0.5)),
              ElementsAre("\"one\ntwo\",x\n", "\"three\nfour\nfive\",y\n"));
  write("a.conll", "New B\nYork I\n\nHi O\nyou O");
  EXPECT_THAT(texts(split({.files = {path("a.conll")}}, Objective::tagging, 0.4)),
              ElementsAre("New B\nYork I\n\n", "Hi O\nyou O\n\n"));
  write("a.mrg", "(S\n  (NP (NNP John))\n  (VP (VBZ has)))\n(S (VP (VB Go)))\n");
  const CorpusSplit trees = split({.files = {path("a.mrg")}}, Objective::parsing, 0.5);
  const auto reader = open_records(trees.training, Objective::parsing);
  Record record;
  ASSERT_TRUE(reader->next(record));
  EXPECT_THAT(record.words, ElementsAre("John", "has"));
  EXPECT_FALSE(reader->next(record));
}

TEST_F(RecordSplitTest, SplitsParallelFilesAtTheSameLine) {
  const CorpusOptions corpus{.files = {write("a.txt", "one\ntwo, which is long\nthree\n"),
                                       write("b.txt", "eins\nzwei\ndrei\n")}};
  EXPECT_THAT(texts(split(corpus, Objective::translation, 0.5)),
              ElementsAre("one\n", "eins\n", "two, which is long\nthree\n", "zwei\ndrei\n"));
  write("b.txt", "eins\nzwei\n");
  expect_error(ErrorCode::invalid_argument, "must have the same number of lines",
               [&] { split(corpus, Objective::translation, 0.5); });
}

TEST_F(RecordSplitTest, SplitsAgainOnlyAfterAChange) {
  const CorpusOptions corpus{.files = {write("a.txt", "one\ntwo\nthree\nfour\n")}};
  const CorpusSplit first = split(corpus, Objective::causal_lm, 0.5);
  const auto written = std::filesystem::last_write_time(first.training.files[0]);
  const CorpusSplit again = split(corpus, Objective::causal_lm, 0.5);
  EXPECT_EQ(again.training, first.training);
  EXPECT_EQ(std::filesystem::last_write_time(again.training.files[0]), written);
  EXPECT_THAT(texts(split(corpus, Objective::causal_lm, 0.25)),
              ElementsAre("one\ntwo\nthree\n", "four\n"));
  write("a.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\n");
  EXPECT_THAT(texts(split(corpus, Objective::causal_lm, 0.5)),
              ElementsAre("ONE\ntwo\nthree\n", "four\nfive\nsix\n"));
}

}  // namespace
}  // namespace heed
