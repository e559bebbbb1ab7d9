// The corpora of ../shared, each with its objective. Skipped where they are missing.
#include <algorithm>
#include <set>

#include "base/files/file_testing.h"
#include "data/batches/batch_testing.h"
#include "data/batches/stream.h"
#include "text/trees/tree.h"

namespace heed {
namespace {

class SharedCorpora : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    if (!std::filesystem::exists(kData)) GTEST_SKIP() << kData << " is not there";
    options_.shuffle = false;
    options_.filters.max_tokens = 100'000;
    options_.batch_tokens = 20'000;
  }
  BatchStream stream(std::vector<std::string> files, Objective kind) {
    for (std::string& file : files) file = kData + file;
    options_.corpora.resize(1);
    options_.corpora[0].files = std::move(files);
    options_.objective.kind = kind;
    return BatchStream(options_, tokenizer_);
  }
  // Checks all batches of an epoch; returns the number of sequences.
  static int64_t count_sequences(BatchStream& stream) {
    int64_t sequences = 0;
    for (Cursor cursor; cursor.epoch == 0;) {
      const TrainingBatch batch = stream.next(cursor);
      for (const Rows* rows : {&batch.input, &batch.target}) {
        EXPECT_EQ(rows->positions.size(), rows->tokens.size());
        EXPECT_EQ(rows->token_types.size(), rows->tokens.size());
        EXPECT_EQ(rows->offsets.back(), rows->rows());
      }
      EXPECT_GT(label_count(batch), 0);
      EXPECT_EQ(std::ssize(batch.examples), batch.sequences());
      sequences += batch.sequences();
    }
    return sequences;
  }

  static inline const std::string kData = std::string(HEED_SHARED) + "/data/";
  StreamOptions options_;
  TokenizerPtr tokenizer_ = make_tokenizer("byte");
};

TEST_F(SharedCorpora, Multi30kKeepsEveryPair) {
  BatchStream valid = stream({"multi30k/val.en.gz", "multi30k/val.de.gz"}, Objective::translation);
  EXPECT_EQ(count_sequences(valid), 1014);
  EXPECT_EQ(valid.reports()[0].read, valid.reports()[0].kept);
  Cursor cursor;
  const TrainingBatch batch = valid.next(cursor);
  const std::span labels(batch.labels.data(), static_cast<size_t>(batch.target.offsets[1]));
  EXPECT_EQ(tokenizer_->decode(labels),
            "Eine Gruppe von Männern lädt Baumwolle auf einen Lastwagen");
}

TEST_F(SharedCorpora, TatoebaIgnoresFurtherTranslations) {
  BatchStream valid = stream({"tatoeba/dev.en-de.tsv"}, Objective::translation);
  EXPECT_EQ(count_sequences(valid), 1500);
}

TEST_F(SharedCorpora, Sst2HasTwoClasses) {
  BatchStream valid = stream({"sst2/dev.txt"}, Objective::classification);
  EXPECT_THAT(valid.labels(), testing::ElementsAre("0", "1"));
  EXPECT_EQ(count_sequences(valid), 872);
}

TEST_F(SharedCorpora, StsbHasScores) {
  options_.corpora.resize(1);
  options_.corpora[0].second_column = "2";
  BatchStream valid = stream({"stsb/stsb-en-dev.csv"}, Objective::regression);
  EXPECT_EQ(count_sequences(valid), 1500) << valid.reports()[0].summary();
  for (Cursor cursor; cursor.epoch == 0;) {
    for (const float score : valid.next(cursor).scores) {
      EXPECT_GE(score, 0);
      EXPECT_LE(score, 5);
    }
  }
}

TEST_F(SharedCorpora, UniversalDependenciesHaveSeventeenTags) {
  BatchStream valid = stream({"ud-ewt/en_ewt-ud-dev.conllu"}, Objective::tagging);
  EXPECT_EQ(valid.labels().size(), 17u);
  int64_t words = 0;
  for (Cursor cursor; cursor.epoch == 0;) words += label_count(valid.next(cursor));
  // Lines of the file that are words of a sentence.
  LineReader reader(kData + "ud-ewt/en_ewt-ud-dev.conllu");
  int64_t expected = 0;
  for (std::string line; reader.next(line);) {
    const std::string number = line.substr(0, line.find('\t'));
    expected += line.find('\t') != std::string::npos &&
                number.find_first_not_of("0123456789") == std::string::npos;
  }
  EXPECT_EQ(words, expected);
}

TEST_F(SharedCorpora, TreesRoundTripThroughTheirTargets) {
  BatchStream valid = stream({"treebank/dev.mrg"}, Objective::parsing);
  int64_t trees = 0;
  for (Cursor cursor; cursor.epoch == 0;) {
    const TrainingBatch batch = valid.next(cursor);
    for (size_t s = 0; s + 1 < batch.target.offsets.size(); ++s, ++trees) {
      const auto text = [&](const std::vector<int32_t>& ids, const std::vector<int32_t>& offsets) {
        return tokenizer_->decode(std::span(ids).subspan(
            static_cast<size_t>(offsets[s]), static_cast<size_t>(offsets[s + 1] - offsets[s])));
      };
      const std::string linear = text(batch.labels, batch.target.offsets);
      std::vector<std::string> words(1);
      for (const char character : text(batch.input.tokens, batch.input.offsets)) {
        if (character == ' ') {
          words.emplace_back();
        } else {
          words.back() += character;
        }
      }
      ASSERT_EQ(linear_tree(tree_from_linear(linear, words)), linear);
    }
  }
  EXPECT_EQ(trees, valid.reports()[0].read);
}

TEST_F(SharedCorpora, ShakespeareIsOneStream) {
  options_.corpora.resize(1);
  options_.corpora[0].unit = TextUnit::file;
  options_.objective.random_blocks = true;
  options_.objective.block_tokens = 64;
  BatchStream all = stream({"shakespeare/input.txt"}, Objective::causal_lm);
  EXPECT_EQ(all.corpus_tokens(), 1115394 + 1);  // its bytes and the end
  EXPECT_EQ(count_sequences(all), 1115394 / 64 + 1);
}

TEST_F(SharedCorpora, WikitextWithEveryLanguageModelObjective) {
  options_.objective.mask_id = 2;  // the byte tokenizer has no mask: use <unk>
  for (const Objective kind : {Objective::causal_lm, Objective::masked_lm,
                               Objective::span_corruption, Objective::denoising}) {
    SCOPED_TRACE(name_of(kind));
    BatchStream valid = stream({"wikitext2/valid.txt"}, kind);
    EXPECT_EQ(valid.reports()[0].read, 3760);
    EXPECT_EQ(valid.reports()[0].kept + valid.reports()[0][Skip::empty].count, 3760);
    EXPECT_GE(count_sequences(valid), valid.reports()[0].kept);
  }
}

}  // namespace
}  // namespace heed
