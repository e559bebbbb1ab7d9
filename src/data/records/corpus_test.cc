#include "data/records/corpus.h"

#include <chrono>

#include "base/files/file_testing.h"
#include "data/batches/tokenizer_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

class CorpusTest : public FolderTest {
 protected:
  StreamOptions translation(const std::string& cache = {}) const {
    StreamOptions options;
    options.corpora = {{.files = {path("a.en"), path("a.de")}}};
    options.cache_folder = cache;
    options.filters.max_tokens = 5;
    return options;
  }
  void write_pairs() const {
    write("a.en", "a b\nb\n\na b c d a\na b\nd d\n");
    write("a.de", "c\nd d d d\nc\nc\nc\n\xC3(\n");
  }
  static std::string contents(const Corpus& corpus) {
    std::string text;
    for (int64_t i = 0; i < corpus.store.examples(); ++i) {
      for (const int32_t id : corpus.store.first(i)) text += std::to_string(id) + " ";
      text += "| ";
      for (const int32_t id : corpus.store.second(i)) text += std::to_string(id) + " ";
      text += "\n";
    }
    return text;
  }
  int cache_files() const {
    int count = 0;
    for (const auto& file : std::filesystem::directory_iterator(path("cache"))) {
      count += file.path().extension() == ".tokens";
    }
    return count;
  }

  const TestingTokenizer tokenizer_{{"a", "b", "c", "d"}};
};

TEST_F(CorpusTest, CountsSkippedExamples) {
  write_pairs();
  StreamOptions options = translation();
  options.filters.max_ratio = 2;
  options.filters.duplicates = true;
  const Corpus corpus = open_corpus(options, 0, tokenizer_);
  EXPECT_EQ(contents(corpus), "6 7 1 | 8 1 \n");
  const CorpusReport& report = corpus.report;
  EXPECT_EQ(report.read, 6);
  EXPECT_EQ(report.kept, 1);
  EXPECT_EQ(report.tokens, 5);
  EXPECT_EQ(report[Skip::ratio].count, 1);
  EXPECT_EQ(report[Skip::empty].count, 1);
  EXPECT_EQ(report[Skip::too_long].count, 1);
  EXPECT_EQ(report[Skip::duplicate].count, 1);
  EXPECT_EQ(report[Skip::invalid_utf8].count, 1);
  EXPECT_EQ(report[Skip::invalid_utf8].first, path("a.de") + ":6");
  EXPECT_EQ(report[Skip::duplicate].first, path("a.en") + ":5");
}

TEST_F(CorpusTest, SaysWhyARowIsMalformed) {
  StreamOptions options;
  options.corpora = {{.files = {write("a.csv", "text,score\na,good\nb,1\nc,2,3\n")},
                      .first_column = "text",
                      .label_column = "score"}};
  options.objective.kind = Objective::regression;
  options.cache_folder = path("cache");
  std::filesystem::create_directories(options.cache_folder);
  const TestingTokenizer bert{{"a", "b", "c"}, /*bert=*/true};
  for (int run = 0; run < 2; ++run) {  // the second one from the cache
    const CorpusReport report = open_corpus(options, 0, bert).report;
    EXPECT_THAT(report.summary(),
                HasSubstr("2 malformed (first: " + path("a.csv") +
                          ":2: the label must be a number for regression, got 'good')"));
  }
}

TEST_F(CorpusTest, IsReadFromTheCacheTheSecondTime) {
  write_pairs();
  const StreamOptions options = translation(path("cache"));
  const Corpus first = open_corpus(options, 0, tokenizer_);
  EXPECT_FALSE(first.report.from_cache);
  Corpus second = open_corpus(options, 0, tokenizer_);
  EXPECT_TRUE(second.report.from_cache);
  EXPECT_EQ(contents(first), contents(second));
  second.report.from_cache = false;
  EXPECT_EQ(first.report.summary(), second.report.summary());
}

TEST_F(CorpusTest, IsRebuiltWhenAFileChanges) {
  write_pairs();
  const StreamOptions options = translation(path("cache"));
  open_corpus(options, 0, tokenizer_);
  // The same size and time, other content.
  const auto time = std::filesystem::last_write_time(path("a.en"));
  write("a.en", "b a\nb\n\na b c d a\na b\nd d\n");
  std::filesystem::last_write_time(path("a.en"), time);
  const Corpus changed = open_corpus(options, 0, tokenizer_);
  EXPECT_FALSE(changed.report.from_cache);
  EXPECT_THAT(contents(changed), HasSubstr("7 6 1 | 8 1"));
  // The same content, another time: rebuilt to be safe.
  std::filesystem::last_write_time(path("a.en"), time + std::chrono::seconds(5));
  EXPECT_FALSE(open_corpus(options, 0, tokenizer_).report.from_cache);
}

TEST_F(CorpusTest, ReplacesAStaleCache) {
  write_pairs();
  const StreamOptions options = translation(path("cache"));
  open_corpus(options, 0, tokenizer_);
  const auto time = std::filesystem::last_write_time(path("a.en"));
  std::filesystem::last_write_time(path("a.en"), time + std::chrono::seconds(5));
  open_corpus(options, 0, tokenizer_);
  EXPECT_EQ(cache_files(), 1);
}

TEST_F(CorpusTest, DependsOnOptionsAndTokenizer) {
  write_pairs();
  StreamOptions options = translation(path("cache"));
  open_corpus(options, 0, tokenizer_);
  const TestingTokenizer other{{"b", "a", "c", "d"}};
  EXPECT_FALSE(open_corpus(options, 0, other).report.from_cache);
  options.filters.max_tokens = 6;
  EXPECT_FALSE(open_corpus(options, 0, tokenizer_).report.from_cache);
  EXPECT_EQ(cache_files(), 3);
  EXPECT_TRUE(open_corpus(options, 0, tokenizer_).report.from_cache);
  options.seed = 99;  // does not affect the cache
  EXPECT_TRUE(open_corpus(options, 0, tokenizer_).report.from_cache);
}

TEST_F(CorpusTest, IsRebuiltWhenTheCacheIsDamaged) {
  write_pairs();
  const StreamOptions options = translation(path("cache"));
  const std::string good = contents(open_corpus(options, 0, tokenizer_));
  for (const auto& file : std::filesystem::directory_iterator(path("cache"))) {
    if (file.path().extension() != ".tokens") continue;
    std::string bytes = read_text(file.path());
    bytes[40] = static_cast<char>(bytes[40] + 1);
    std::ofstream(file.path(), std::ios::binary) << bytes;
  }
  const Corpus again = open_corpus(options, 0, tokenizer_);
  EXPECT_FALSE(again.report.from_cache);
  EXPECT_EQ(contents(again), good);
}

TEST_F(CorpusTest, IsIndependentOfTheNumberOfThreads) {
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    text += std::string("a b c d").substr(0, static_cast<size_t>(1 + 2 * (i % 4))) + "\n";
  }
  write("a.txt", text);
  StreamOptions options;
  options.corpora = {{.files = {path("a.txt")}}};
  options.objective.kind = Objective::causal_lm;
  options.threads = 1;
  int64_t examples_seen = 0;
  double fraction = 0;
  options.progress = [&](const DataProgress& progress) {
    EXPECT_GE(progress.examples, examples_seen);
    examples_seen = progress.examples;
    fraction = progress.fraction;
  };
  const std::string one = contents(open_corpus(options, 0, tokenizer_));
  EXPECT_EQ(examples_seen, 20000);
  EXPECT_EQ(fraction, 1);
  options.threads = 3;
  examples_seen = 0;
  EXPECT_EQ(contents(open_corpus(options, 0, tokenizer_)), one);
}

TEST_F(CorpusTest, NumbersLabelsAsTheyAppear) {
  write("a.txt", "good a\nbad b\ngood c\n");
  StreamOptions options;
  options.corpora = {{.files = {path("a.txt")}}};
  options.objective.kind = Objective::classification;
  options.cache_folder = path("cache");
  for (const bool cached : {false, true}) {
    const Corpus corpus = open_corpus(options, 0, tokenizer_);
    EXPECT_EQ(corpus.report.from_cache, cached);
    EXPECT_THAT(corpus.labels, ElementsAre("good", "bad"));
    EXPECT_EQ(contents(corpus), "6 1 | 2 0 \n7 1 | 2 1 \n8 1 | 2 0 \n");
  }
}

TEST_F(CorpusTest, ReportsAnUnusableCacheFolder) {
  write_pairs();
  write("file", "");
  expect_error(ErrorCode::invalid_argument, path("file/cache"),
               [&] { open_corpus(translation(path("file/cache")), 0, tokenizer_); });
}

}  // namespace
}  // namespace heed
