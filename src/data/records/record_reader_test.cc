#include "data/records/record_reader.h"

#include "base/files/file_testing.h"
#include "base/philox.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RecordReaderTest : public FolderTest {
 protected:
  std::vector<Record> read(const CorpusOptions& corpus, Objective objective,
                           const FilterOptions& filters = {}) {
    const auto reader = open_records(corpus, objective, filters);
    std::vector<Record> records;
    for (Record record; reader->next(record);) {
      where_.push_back(record.where().substr(folder_.string().size() + 1));
      record.file = nullptr;  // the reader's, which ends here
      records.push_back(record);
    }
    return records;
  }
  std::vector<std::string> where_;
};

TEST_F(RecordReaderTest, PairsTheLinesOfTwoFiles) {
  const std::string en = write("a.en", "one\n\nthree\nfour\nfi\xFFve\n"),
                    de = write("a.de", "eins\nzwei\n  \nvier\nfuenf");
  const auto records = read({.files = {en, de}}, Objective::translation);
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0].first, "one");
  EXPECT_EQ(records[0].second, "eins");
  EXPECT_FALSE(records[0].skip);
  EXPECT_EQ(records[1].skip, Skip::empty);
  EXPECT_EQ(records[2].skip, Skip::empty);
  EXPECT_EQ(records[4].skip, Skip::invalid_utf8);
  EXPECT_THAT(where_, ElementsAre("a.en:1", "a.en:2", "a.de:3", "a.en:4", "a.en:5"));
}

TEST_F(RecordReaderTest, SkipsNulAndVeryLongLines) {
  using namespace std::string_literals;
  const std::string file = write("a.txt", "a\0b\n"s + std::string(10'000'000, 'x') + "\nfine\n");
  const auto records = read({.files = {file}}, Objective::causal_lm);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].skip, Skip::nul);
  EXPECT_EQ(records[1].skip, Skip::long_line);
  EXPECT_EQ(records[2].first, "fine");
}

TEST_F(RecordReaderTest, RejectsParallelFilesOfDifferentLengths) {
  const std::string en = write("a.en", "1\n2\n3\n"), de = write("a.de", "1\n2\n3\n4\n5\n");
  expect_error(ErrorCode::invalid_argument, "a.en has 3 lines, " + de + " has 5", [&] {
    read({.files = {en, de}}, Objective::translation);
  });
}

TEST_F(RecordReaderTest, RejectsMissingFilesAndFolders) {
  expect_error(ErrorCode::not_found, "nowhere.en", [&] {
    open_records({.files = {path("nowhere.en"), path("nowhere.de")}}, Objective::translation);
  });
  const std::string good = write("a.txt", "text\n");
  expect_error(ErrorCode::not_found, "b.txt", [&] {  // before a line of a.txt is read
    open_records({.files = {good, path("b.txt")}}, Objective::causal_lm);
  });
  expect_error(ErrorCode::invalid_argument, folder_,
               [&] { open_records({.files = {folder_}}, Objective::causal_lm); });
  expect_error(ErrorCode::invalid_argument, "must have files",
               [&] { open_records({}, Objective::causal_lm); });
  expect_error(ErrorCode::invalid_argument, "two files", [&] {
    open_records({.files = {good}, .format = CorpusFormat::parallel}, Objective::translation);
  });
  expect_error(ErrorCode::invalid_argument, "\"tagging\"", [&] {
    open_records({.files = {good}, .format = CorpusFormat::text}, Objective::tagging);
  });
}

TEST_F(RecordReaderTest, FindsTheFormatByName) {
  const auto format = [](std::vector<std::string> files, Objective objective) {
    return format_of({.files = std::move(files)}, objective);
  };
  EXPECT_EQ(format({"a.en", "a.de"}, Objective::translation), CorpusFormat::parallel);
  EXPECT_EQ(format({"a.en-de.tsv.gz"}, Objective::translation), CorpusFormat::tsv);
  EXPECT_EQ(format({"a.csv"}, Objective::regression), CorpusFormat::csv);
  EXPECT_EQ(format({"a.jsonl.zst"}, Objective::causal_lm), CorpusFormat::jsonl);
  EXPECT_EQ(format({"a.txt"}, Objective::classification), CorpusFormat::labelled);
  EXPECT_EQ(format({"a.txt", "b.txt"}, Objective::masked_lm), CorpusFormat::text);
  EXPECT_EQ(format({"en.conllu.gz"}, Objective::tagging), CorpusFormat::conll);
  EXPECT_EQ(format({"wsj.mrg"}, Objective::parsing), CorpusFormat::brackets);
}

TEST_F(RecordReaderTest, ReadsLinesOfSeveralTexts) {
  const auto records =
      read({.files = {write("a", "One. Two\n"), write("b", "three")}}, Objective::causal_lm);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_THAT(records[0].sentences, ElementsAre(4));
  EXPECT_EQ(records[1].first, "three");
  EXPECT_THAT(where_, ElementsAre("a:1", "b:1"));
}

TEST_F(RecordReaderTest, JoinsTheLinesOfAParagraph) {
  const auto records = read({.files = {write("a", "\nA b.\nC d.\n\n\nE f.\n"), write("b", "G h.")},
                             .unit = TextUnit::paragraph},
                            Objective::masked_lm);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].first, "A b. C d.");
  EXPECT_THAT(records[0].sentences, ElementsAre(4));
  EXPECT_EQ(records[1].first, "E f.");
  EXPECT_EQ(records[2].first, "G h.");
  EXPECT_THAT(where_, ElementsAre("a:2", "a:6", "b:1"));
}

TEST_F(RecordReaderTest, SplitsAWholeFileWithoutLoss) {
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) {
    text += "line " + std::to_string(i) + (i % 3 == 0 ? "\n\n" : "\n");
  }
  const auto records =
      read({.files = {write("a", text), write("b", "x\n")}, .unit = TextUnit::file},
           Objective::causal_lm);
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].first + records[1].first + records[2].first, text);
  for (const size_t part : {0, 1}) {
    EXPECT_FALSE(records[part].ends_document);
    EXPECT_FALSE(records[part].first.ends_with("\n\n"));  // where a tokenizer might join newlines
    EXPECT_NE(records[part + 1].first[0], '\n');
  }
  EXPECT_TRUE(records[2].ends_document);
  EXPECT_EQ(records[3].first, "x\n");
}

TEST_F(RecordReaderTest, SkipsOnlyTheBadLineOfAFile) {
  const auto records =
      read({.files = {write("a", "one\ntw\xFFo\nthree\n")}, .unit = TextUnit::file},
           Objective::causal_lm);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].first, "one\n");
  EXPECT_EQ(records[1].skip, Skip::invalid_utf8);
  EXPECT_EQ(records[2].first, "three\n");
  EXPECT_THAT(where_, ElementsAre("a:1", "a:2", "a:3"));
}

// Every reader accepts any content.
TEST_F(RecordReaderTest, AcceptsAnyBytes) {
  using namespace std::string_literals;
  const std::string alphabet = "a1 \t\n\n\",:{}[]()-#.\\\0\xC3\xFF"s;
  const std::pair<CorpusFormat, Objective> kinds[] = {
      {CorpusFormat::text, Objective::causal_lm},
      {CorpusFormat::tsv, Objective::classification},
      {CorpusFormat::csv, Objective::regression},
      {CorpusFormat::jsonl, Objective::tagging},
      {CorpusFormat::labelled, Objective::classification},
      {CorpusFormat::conll, Objective::tagging},
      {CorpusFormat::brackets, Objective::parsing},
      {CorpusFormat::brackets, Objective::tagging}};
  Random random({.seed = 17});
  for (int round = 0; round < 60; ++round) {
    std::string bytes;
    for (uint64_t n = random.below(400); n > 0; --n)
      bytes += alphabet[random.below(alphabet.size())];
    const std::string file = write("a", bytes);
    for (const auto& [format, objective] : kinds) {
      for (const TextUnit unit : {TextUnit::line, TextUnit::paragraph, TextUnit::file}) {
        if (unit != TextUnit::line && format != CorpusFormat::text) continue;
        for (const Record& record :
             read({.files = {file}, .format = format, .unit = unit}, objective)) {
          ASSERT_EQ(record.words.size() == record.tags.size() || objective != Objective::tagging ||
                        record.skip.has_value(),
                    true);
          if (record.skip) continue;
          ASSERT_FALSE(record.first.empty() && record.words.empty()) << name_of(format);
        }
      }
    }
  }
}

TEST_F(RecordReaderTest, ReadsLabelledLines) {
  const auto records =
      read({.files = {write("a.txt", "0 bad film\n1 good\n1\n\n")}}, Objective::classification);
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].label, "0");
  EXPECT_EQ(records[0].first, "bad film");
  EXPECT_EQ(records[2].skip, Skip::empty);
  EXPECT_EQ(records[3].skip, Skip::empty);
}

TEST_F(RecordReaderTest, ReadsTables) {
  const auto tsv =
      read({.files = {write("a.tsv", "a\tb\tc\nonly\n\nd\te\n")}}, Objective::translation);
  ASSERT_EQ(tsv.size(), 4u);
  EXPECT_EQ(tsv[0].second, "b");
  EXPECT_EQ(tsv[1].skip, Skip::malformed);
  EXPECT_EQ(tsv[2].skip, Skip::empty);
  EXPECT_EQ(tsv[3].first, "d");

  // A quoted column over two lines, a header in each of two files, and a quote that never closes.
  const std::string one = write("1.csv", "id,text,gold\n1,\"a\nb\",x\n");
  const std::string two = write("2.csv", "id,text,gold\n2,\"c\"\"d\",y\n3,\"open,z\n");
  const auto csv = read({.files = {one, two}, .first_column = "text", .label_column = "gold"},
                        Objective::classification);
  ASSERT_EQ(csv.size(), 3u);
  EXPECT_EQ(csv[0].first, "a\nb");
  EXPECT_EQ(csv[0].label, "x");
  EXPECT_EQ(csv[1].first, "c\"d");
  EXPECT_EQ(csv[2].skip, Skip::malformed);

  expect_error(ErrorCode::invalid_argument, "1.csv:1: the header must have the column \"nope\"",
               [&] { read({.files = {one}, .first_column = "nope"}, Objective::causal_lm); });
}

// A comma that should be quoted must not cut a text silently.
TEST_F(RecordReaderTest, RejectsRowsOfCsvWithMoreColumns) {
  const CorpusOptions named{
      .files = {write("a.csv",
                      "id,gold,text\n1,food,I like pizza, pasta and wine\n2,food,\"a, b\"\n"
                      "3,x\n4,x,y,,\n5,x,\"a \"good\" film\"\n6,x,\"never closed\n7,x,y\n")},
      .first_column = "text",
      .label_column = "gold"};
  const auto rows = read(named, Objective::classification);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].skip, Skip::malformed);
  EXPECT_EQ(rows[0].why, "4 columns, the header has 3: quote a text that contains a comma");
  EXPECT_EQ(rows[1].first, "a, b");
  EXPECT_EQ(rows[2].why, "2 columns, must have 3");
  EXPECT_FALSE(rows[3].skip);  // empty columns at the end hold no text
  EXPECT_EQ(rows[4].why, "text follows a closing quote: double the quotes inside a quoted column");
  EXPECT_EQ(where_[5], "a.csv:7");
  EXPECT_EQ(rows[5].why, "the quote is not closed, so the lines up to 8 belong to this row");

  // Without a header the first row of each file defines the columns; TSV ignores further ones.
  const std::string one = write("1.csv", "x,a\ny,b, c\n"), two = write("2.csv", "x,a,b\ny,b,c\n");
  const CorpusOptions numbered{.files = {one, two}, .first_column = "2", .label_column = "1"};
  const auto others = read(numbered, Objective::classification);
  ASSERT_EQ(others.size(), 4u);
  EXPECT_EQ(others[1].why, "3 columns, the first row has 2: quote a text that contains a comma");
  EXPECT_FALSE(others[2].skip);
  EXPECT_FALSE(others[3].skip);
}

TEST_F(RecordReaderTest, ReadsJsonLines) {
  const auto records =
      read({.files = {write(
                "a.jsonl",
                "{\"text\": \"A. B\"}\nnot json\n{\"text\": \"a\\u0000b\"}\n{\"text\": \" \"}\n")}},
           Objective::denoising);
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].first, "A. B");
  EXPECT_THAT(records[0].sentences, ElementsAre(2));
  EXPECT_EQ(records[1].skip, Skip::malformed);
  EXPECT_EQ(records[1].why, "not valid JSON");
  EXPECT_EQ(records[2].skip, Skip::nul);
  EXPECT_EQ(records[3].skip, Skip::empty);
}

TEST_F(RecordReaderTest, ReadsConlluWithoutContractionsAndEmptyNodes) {
  const auto records = read({.files = {write("a.conllu",
                                             "# sent_id = 1\n"
                                             "1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
                                             "1\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_\n"
                                             "2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_\n"
                                             "2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_\n"
                                             "\n# text = #\n"
                                             "1\t#\t#\tSYM\tNN\t_\t0\troot\t_\t_\n")}},
                            Objective::tagging);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_THAT(records[0].words, ElementsAre("do", "n't"));
  EXPECT_THAT(records[0].tags, ElementsAre("AUX", "PART"));
  EXPECT_THAT(records[1].words, ElementsAre("#"));
}

TEST_F(RecordReaderTest, ReadsConll2003) {
  const std::string file =
      write("eng.conll", "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\n# NN B-NP O\n\nbad\nb b\n");
  const auto records = read({.files = {file}}, Objective::tagging);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].skip, Skip::empty);
  EXPECT_THAT(records[1].words, ElementsAre("EU", "#"));
  EXPECT_THAT(records[1].tags, ElementsAre("B-ORG", "O"));
  const auto pos = read({.files = {file}, .label_column = "2"}, Objective::tagging);
  EXPECT_THAT(pos[1].tags, ElementsAre("NNP", "NN"));
  EXPECT_EQ(pos[2].skip, Skip::malformed);
  EXPECT_EQ(pos[2].why, "line 6 has 1 columns, must have 2");
  expect_error(ErrorCode::invalid_argument, "must be a number",
               [&] { read({.files = {file}, .label_column = "ner"}, Objective::tagging); });
}

TEST_F(RecordReaderTest, ReadsTreesAsSentencesAndLinearTargets) {
  const std::string file =
      write("a.mrg", "( (S (NP-SBJ (NN a) (-NONE- *))\n (VP (VB b))) )\n(S (NN c)\n");
  const auto records = read({.files = {file}}, Objective::parsing);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].first, "a b");
  EXPECT_EQ(records[0].second, "(S (NP XX )NP (VP XX )VP )S");
  EXPECT_EQ(records[1].skip, Skip::malformed);
  const auto written = [&](LinearWords words) {
    return read({.files = {file}, .tree_words = words}, Objective::parsing)[0].second;
  };
  EXPECT_EQ(written(LinearWords::tags), "(S (NP NN )NP (VP VB )VP )S");
  EXPECT_EQ(written(LinearWords::words), "(S (NP a )NP (VP b )VP )S");
  EXPECT_THAT(read({.files = {file}}, Objective::tagging)[0].tags, ElementsAre("NN", "VB"));
}

TEST(Sentences, BeginAfterPunctuationAndASpace) {
  EXPECT_THAT(find_sentences("One. Two! (Three?) Four"), ElementsAre(4, 9, 18));
  EXPECT_THAT(find_sentences("3.5 and e.g.nothing. "), IsEmpty());
  EXPECT_THAT(find_sentences(""), IsEmpty());
}

}  // namespace
}  // namespace heed
