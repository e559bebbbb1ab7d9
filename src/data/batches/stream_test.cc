#include "data/batches/stream.h"

#include <algorithm>
#include <set>

#include "base/files/file_testing.h"
#include "base/philox.h"
#include "data/batches/batch_testing.h"
#include "data/batches/tokenizer_testing.h"

namespace heed {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A few words that tests may write, and T5's sentinels.
enum : int32_t { pad, end, unk, mask, cls, sep, a, b, c, d, ab_, s0, s1, s2, s3 };
const std::vector<std::string> kPieces{
    "a", "b", "c", "d", "##b", "<extra_id_0>", "<extra_id_1>", "<extra_id_2>", "<extra_id_3>"};

class StreamTest : public FolderTest {
 protected:
  // `lines` pairs of different lengths.
  StreamOptions pairs(int lines) const {
    std::string source, target;
    Random random({.seed = 5});
    for (int i = 0; i < lines; ++i) {
      for (uint64_t n = 1 + random.below(12); n > 0; --n)
        source += "abcd"[random.below(4)] + std::string(" ");
      for (uint64_t n = 1 + random.below(12); n > 0; --n)
        target += "abcd"[random.below(4)] + std::string(" ");
      source += '\n';
      target += '\n';
    }
    StreamOptions options;
    options.corpora = {{.files = {write("x.en", source), write("x.de", target)}}};
    options.batch_tokens = 100;
    return options;
  }
  StreamOptions text(const std::string& content, Objective kind) const {
    StreamOptions options;
    options.corpora = {{.files = {write("x.txt", content)}}};
    options.objective.kind = kind;
    options.objective.block_tokens = 8;
    options.shuffle = false;
    return options;
  }
  // One unshuffled epoch in one batch.
  TrainingBatch all(StreamOptions options, TokenizerPtr tokenizer = nullptr) const {
    options.batch_tokens = 1'000'000;
    BatchStream stream(options, tokenizer ? tokenizer : plain_);
    Cursor cursor;
    TrainingBatch batch = stream.next(cursor);
    EXPECT_EQ(cursor, (Cursor{.epoch = 1}));
    return batch;
  }

  const TokenizerPtr plain_ = std::make_shared<TestingTokenizer>(kPieces);
  const TokenizerPtr bert_ = std::make_shared<TestingTokenizer>(kPieces, true);
};

TEST_F(StreamTest, SubwordDropoutDiffersByEpoch) {
  const auto words = std::make_shared<TestingTokenizer>(
      std::vector<std::string>{"a", "##b", "ab", "##cd", "##c", "##d", "abcd"});
  std::string text;
  for (int i = 0; i < 200; ++i) text += i % 3 == 0 ? "abcd ab\n" : "abcd abcd abcd\n";
  StreamOptions options;
  options.corpora = {{.files = {write("x.en", text), write("x.de", text)}}};
  options.batch_tokens = 60;
  options.objective.subword_dropout = 0.3;
  BatchStream stream(options, words);
  std::vector<int32_t> epochs[2];
  for (Cursor cursor; cursor.epoch < 2;) {
    const Cursor at = cursor;
    const TrainingBatch batch = stream.next(cursor);
    EXPECT_LE(batch.rows(), options.batch_tokens);
    EXPECT_EQ(batch.target.tokens.size(), batch.labels.size());
    auto& tokens = epochs[at.epoch];
    tokens.insert(tokens.end(), batch.input.tokens.begin(), batch.input.tokens.end());
    Cursor again = at;
    EXPECT_EQ(BatchStream(options, words).next(again).labels, batch.labels);
  }
  EXPECT_GT(epochs[0].size(), words->encode_ids(text).size());
  std::multiset<int32_t> first(epochs[0].begin(), epochs[0].end());
  std::multiset<int32_t> second(epochs[1].begin(), epochs[1].end());
  EXPECT_NE(first, second);

  options.objective.kind = Objective::parsing;
  EXPECT_THROW(BatchStream(options, words), Error);
}

// No sequence may exceed the context length, and no batch the planned memory, in any epoch.
TEST_F(StreamTest, SubwordDropoutStaysWithinTheLimits) {
  const auto words = std::make_shared<TestingTokenizer>(
      std::vector<std::string>{"a", "##b", "ab", "##cd", "##c", "##d", "abcd"});
  std::string source, target;
  for (int i = 0; i < 60; ++i) {
    for (int n = 0; n <= i % 5; ++n) source += "abcd ";
    for (int n = 0; n <= i % 3; ++n) target += n % 2 == 0 ? "ab " : "abcd ";
    source += "\n", target += "\n";
  }
  StreamOptions options;
  options.corpora = {{.files = {write("x.en", source), write("x.de", target)}}};
  options.filters.max_tokens = 9;  // whole: 2 … 6 and 2 … 4; all apart: up to 21 and 9
  options.objective.subword_dropout = 0.5;
  const auto longest = [](const TrainingBatch& batch) {
    int32_t most = 0;
    for (const Rows* rows : {&batch.input, &batch.target}) {
      for (size_t s = 1; s < rows->offsets.size(); ++s) {
        most = std::max(most, rows->offsets[s] - rows->offsets[s - 1]);
      }
    }
    return most;
  };
  // Batches by tokens, by sentences, and each example alone.
  for (const auto& [tokens, sentences] : {std::pair{47, 0}, {1000, 3}, {1, 0}}) {
    SCOPED_TRACE(tokens);
    options.batch_tokens = tokens, options.batch_sentences = sentences;
    BatchStream stream(options, words);
    const TrainingBatch largest = stream.largest_batch();
    EXPECT_LE(longest(largest), 9);
    EXPECT_EQ(largest.labels.size(), largest.target.tokens.size());
    int32_t most = 0;
    for (Cursor cursor; cursor.epoch < 30;) {
      const TrainingBatch batch = stream.next(cursor);
      EXPECT_LE(batch.rows(), largest.rows());
      EXPECT_LE(longest(batch), longest(largest));
      most = std::max(most, longest(batch));
    }
    EXPECT_EQ(most, 9);
  }
}

TEST_F(StreamTest, TeacherForcesTranslations) {
  StreamOptions options;
  options.corpora = {{.files = {write("x.en", "a b\nc\n"), write("x.de", "d\na a\n")}}};
  options.shuffle = false;
  const TrainingBatch batch = all(options);
  EXPECT_THAT(batch.input.tokens, ElementsAre(a, b, end, c, end));
  EXPECT_THAT(batch.input.positions, ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(batch.input.offsets, ElementsAre(0, 3, 5));
  EXPECT_THAT(batch.target.tokens, ElementsAre(pad, d, pad, a, a));
  EXPECT_THAT(batch.target.offsets, ElementsAre(0, 2, 5));
  EXPECT_THAT(batch.labels, ElementsAre(d, end, a, a, end));
  EXPECT_THAT(batch.examples, ElementsAre(0, 1));
  EXPECT_EQ(batch.rows(), 10);
  options.objective.decoder_start_id = cls;
  EXPECT_EQ(all(options).target.tokens[0], cls);
}

TEST_F(StreamTest, AnEpochHasEachPairOnce) {
  BatchStream stream(pairs(500), plain_);
  EXPECT_EQ(stream.examples(), 500);
  Cursor cursor;
  for (const uint64_t epoch : {0, 1}) {
    std::multiset<int64_t> seen;
    while (cursor.epoch == epoch) {
      const TrainingBatch batch = stream.next(cursor);
      EXPECT_LE(batch.rows(), 100);
      EXPECT_EQ(batch.labels.size(), batch.target.tokens.size());
      seen.insert(batch.examples.begin(), batch.examples.end());
    }
    EXPECT_EQ(seen.size(), 500u);
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 500u);
  }
}

TEST_F(StreamTest, ResumesFromAnyCursor) {
  StreamOptions options = pairs(300);
  options.pool_examples = 64;
  options.cache_folder = path("cache");
  options.objective.kind = Objective::translation;
  BatchStream unbroken(options, plain_);
  std::vector<Cursor> cursors;
  std::vector<TrainingBatch> batches;
  for (Cursor cursor; cursor.epoch < 3;) {
    cursors.push_back(cursor);
    batches.push_back(unbroken.next(cursor));
  }
  Random random({.seed = 9});
  options.threads = 3;
  for (int round = 0; round < 30; ++round) {
    BatchStream resumed(options, plain_);  // another process
    size_t place = random.below(batches.size() - 2);
    Cursor cursor = cursors[place];
    for (const size_t until = std::min(place + 3, batches.size() - 1); place < until; ++place) {
      ASSERT_EQ(resumed.next(cursor), batches[place]) << place;
      ASSERT_EQ(cursor, cursors[place + 1]);
    }
  }
}

TEST_F(StreamTest, RanksDivideTheBatches) {
  StreamOptions options = pairs(200);
  BatchStream one(options, plain_);
  options.ranks = 3;
  std::vector<BatchStream> ranks;
  for (options.rank = 0; options.rank < 3; ++options.rank) ranks.emplace_back(options, plain_);
  Cursor single;
  std::vector<Cursor> cursors(3);
  for (int step = 0; step < 60; ++step) {  // over several epochs, which are no multiple of 3
    for (size_t rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(ranks[rank].next(cursors[rank]), one.next(single)) << step << " " << rank;
    }
    ASSERT_EQ(cursors[0], cursors[1]);
    ASSERT_EQ(cursors[0], cursors[2]);
    ASSERT_EQ(cursors[0], single);
  }
  EXPECT_GT(single.epoch, 2u);
}

TEST_F(StreamTest, RejectsACursorOfOtherData) {
  BatchStream stream(pairs(50), plain_);
  Cursor cursor{.epoch = 0, .pool = 0, .batch = 10'000};
  expect_error(ErrorCode::invalid_argument, "must be a position of this corpus",
               [&] { stream.next(cursor); });
  cursor = {.epoch = 0, .pool = 5, .batch = 0};
  expect_error(ErrorCode::invalid_argument, "must be a position of this corpus",
               [&] { stream.next(cursor); });
}

TEST_F(StreamTest, ReportsAllInvalidOptions) {
  StreamOptions options = pairs(5);
  options.batch_tokens = 0;
  options.objective.mask_rate = 2;
  options.rank = 1;
  try {
    BatchStream stream(options, plain_);
    FAIL() << "was made";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("batch_tokens"));
    EXPECT_THAT(error.what(), HasSubstr("mask_rate"));
    EXPECT_THAT(error.what(), HasSubstr("rank must be"));
  }
}

TEST_F(StreamTest, ReportsWhyAllExamplesWereSkipped) {
  StreamOptions options = pairs(5);
  options.filters.max_tokens = 1;
  expect_error(ErrorCode::invalid_argument, "5 too_long (first: " + path("x.en") + ":1)",
               [&] { BatchStream stream(options, plain_); });
}

TEST_F(StreamTest, LargestBatchIsAnUpperBound) {
  BatchStream stream(pairs(300), plain_);
  const TrainingBatch largest = stream.largest_batch();
  EXPECT_LE(largest.rows(), 100);
  EXPECT_GT(largest.rows(), 70);
  const auto longest = [](const Rows& rows) {
    int32_t most = 0;
    for (size_t s = 1; s < rows.offsets.size(); ++s) {
      most = std::max(most, rows.offsets[s] - rows.offsets[s - 1]);
    }
    return most;
  };
  int32_t most = 0;
  for (Cursor cursor; cursor.epoch == 0;) {
    const TrainingBatch batch = stream.next(cursor);
    for (int64_t s = 0; s < batch.sequences(); ++s) {
      const auto i = static_cast<size_t>(s);
      most = std::max(most, batch.input.offsets[i + 1] - batch.input.offsets[i] +
                                batch.target.offsets[i + 1] - batch.target.offsets[i]);
    }
  }
  EXPECT_GE(longest(largest.input) + longest(largest.target), most);
}

TEST_F(StreamTest, CausalDocumentsAreSplitWithoutLoss) {
  StreamOptions options = text("a b c d a b\nc\n", Objective::causal_lm);
  options.objective.block_tokens = 4;
  const TrainingBatch batch = all(options);
  // The first document is a b c d a b </s>: rows a b c d, then a b.
  EXPECT_THAT(batch.input.tokens, ElementsAre(a, b, c, d, a, b, c));
  EXPECT_THAT(batch.labels, ElementsAre(b, c, d, a, b, end, end));
  EXPECT_THAT(batch.input.offsets, ElementsAre(0, 4, 6, 7));
  EXPECT_THAT(batch.input.positions, ElementsAre(0, 1, 2, 3, 0, 1, 0));
  EXPECT_THAT(batch.examples, ElementsAre(0, 0, 1));
  EXPECT_TRUE(batch.target.empty());
}

TEST_F(StreamTest, ABeginAndEndTokenIsOnBothSides) {
  StreamOptions options = text("a b c\nd\n", Objective::causal_lm);
  options.objective.begin_id = end;  // as <|endoftext|> is
  options.objective.block_tokens = 3;
  const TrainingBatch batch = all(options);
  EXPECT_THAT(batch.input.tokens, ElementsAre(end, a, b, c, end, d));
  EXPECT_THAT(batch.labels, ElementsAre(a, b, c, end, d, end));
  EXPECT_THAT(batch.input.offsets, ElementsAre(0, 3, 4, 6));
}

TEST_F(StreamTest, BlocksInOrderCoverTheStream) {
  StreamOptions options = text("a b c\nd a b\n", Objective::causal_lm);
  options.objective.random_blocks = true;
  options.objective.block_tokens = 3;
  const TrainingBatch batch = all(options);  // a b c </s> d a b </s>
  EXPECT_THAT(batch.input.tokens, ElementsAre(a, b, c, end, d, a, b));
  EXPECT_THAT(batch.labels, ElementsAre(b, c, end, d, a, b, end));
  EXPECT_THAT(batch.input.offsets, ElementsAre(0, 3, 6, 7));
}

TEST_F(StreamTest, RandomBlocksCoverTheCorpusAndDifferByEpoch) {
  std::string content;
  for (int i = 0; i < 100; ++i) content += "a b c d\n";
  StreamOptions options = text(content, Objective::causal_lm);
  options.shuffle = true;
  options.objective.random_blocks = true;
  options.objective.block_tokens = 5;
  options.batch_sentences = 12;
  BatchStream stream(options, plain_);
  EXPECT_EQ(stream.examples() % 12, 0);
  std::set<std::vector<int32_t>> starts;
  Cursor cursor;
  const TrainingBatch first = stream.next(cursor);
  while (cursor.epoch < 2) {
    const TrainingBatch batch = stream.next(cursor);
    ASSERT_EQ(batch.sequences(), 12);
    ASSERT_EQ(batch.input.rows(), 60);
    for (size_t row = 0; row + 1 < 60; ++row) {
      if (row % 5 == 4) continue;
      ASSERT_EQ(batch.labels[row], batch.input.tokens[row + 1]);
    }
    starts.insert({batch.input.tokens[0]});
  }
  EXPECT_EQ(starts.size(), 5u);
  Cursor second{.epoch = 1};
  EXPECT_NE(stream.next(second), first);

  options.objective.block_tokens = 10'000;
  expect_error(ErrorCode::invalid_argument, "too few for a block",
               [&] { BatchStream refused(options, plain_); });
}

TEST_F(StreamTest, MasksDocumentsBetweenTheirSpecialTokens) {
  StreamOptions options = text("a b c d a b c d a b\n", Objective::masked_lm);
  const TrainingBatch batch = all(options, bert_);
  EXPECT_THAT(batch.input.offsets, ElementsAre(0, 8, 14));  // 6 + 2, 4 + 2
  EXPECT_EQ(batch.input.tokens[0], cls);
  EXPECT_EQ(batch.input.tokens[7], sep);
  EXPECT_EQ(label_count(batch), 2);  // one a sequence: round(0.9), round(0.6)
  const std::vector<int32_t> ids{cls, a, b, c, d, a, b, sep, cls, c, d, a, b, sep};
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_TRUE(batch.labels[i] == kIgnoreLabel ? batch.input.tokens[i] == ids[i]
                                                : batch.labels[i] == ids[i])
        << i;
  }
}

TEST_F(StreamTest, MasksDifferByEpochUnlessCopiesAreFixed) {
  std::string content;
  for (int i = 0; i < 30; ++i) content += "a b c d a b c d a b c d\n";
  StreamOptions options = text(content, Objective::masked_lm);
  options.objective.block_tokens = 20;
  options.batch_tokens = 10'000;
  const auto epochs = [&] {
    BatchStream stream(options, bert_);
    std::vector<std::vector<int32_t>> labels;
    for (Cursor cursor; cursor.epoch < 4;) labels.push_back(stream.next(cursor).labels);
    return labels;
  };
  const auto dynamic = epochs();
  EXPECT_NE(dynamic[0], dynamic[1]);
  EXPECT_EQ(dynamic, epochs());
  options.objective.mask_copies = 2;
  const auto copies = epochs();
  EXPECT_NE(copies[0], copies[1]);
  EXPECT_EQ(copies[0], copies[2]);
  EXPECT_EQ(copies[1], copies[3]);
}

TEST_F(StreamTest, FullSentencesFillBlocksAcrossDocuments) {
  StreamOptions options = text("a b. c d.\na b\n\nc\nd d d d d d d\n", Objective::masked_lm);
  options.corpora[0].unit = TextUnit::paragraph;
  options.objective.masked_input = MaskedInput::full_sentences;
  options.objective.mask_rate = 0;  // one token is still masked: check the labels too
  options.objective.mask_share = 0;
  options.objective.random_share = 0;
  const TokenizerPtr tokenizer = std::make_shared<TestingTokenizer>(
      std::vector<std::string>{"a", "b", "c", "d", "b.", "d."}, true);
  constexpr int32_t b_ = 10, d_ = 11;
  const TrainingBatch batch = all(options, tokenizer);
  // 6 tokens fit: "a b. c d." and "a b", then document 2 with a sentence of 7, which is split.
  EXPECT_THAT(batch.input.tokens, ElementsAre(cls, a, b_, c, d_, a, b, sep, cls, c, sep, cls, d, d,
                                              d, d, d, d, sep, cls, d, sep));
  EXPECT_THAT(batch.input.offsets, ElementsAre(0, 8, 11, 19, 22));
  options.objective.block_tokens = 10;
  EXPECT_THAT(all(options, tokenizer).input.tokens,
              ElementsAre(cls, a, b_, c, d_, a, b, sep, c, sep, cls, d, d, d, d, d, d, d, sep));
}

TEST_F(StreamTest, SentencePairsAreLabelled) {
  std::string content;
  for (int document = 0; document < 200; ++document) {
    // Even documents have only a and b, odd ones c and d.
    content += document % 2 == 0 ? "a b a\nb b\na a b\n\n" : "c d c\nd d\nc c d\n\n";
  }
  StreamOptions options = text(content, Objective::masked_lm);
  options.corpora[0].unit = TextUnit::paragraph;
  options.objective.masked_input = MaskedInput::sentence_pairs;
  options.objective.block_tokens = 11;
  options.objective.mask_share = 0;  // tokens stay unmasked
  options.objective.random_share = 0;
  const TrainingBatch batch = all(options, bert_);
  int random = 0, other_kind = 0;
  for (int64_t s = 0; s < batch.sequences(); ++s) {
    const auto i = static_cast<size_t>(s);
    const std::vector<int32_t> ids(batch.input.tokens.begin() + batch.input.offsets[i],
                                   batch.input.tokens.begin() + batch.input.offsets[i + 1]);
    const std::vector<int32_t> types(batch.input.token_types.begin() + batch.input.offsets[i],
                                     batch.input.token_types.begin() + batch.input.offsets[i + 1]);
    ASSERT_LE(ids.size(), 11u);
    ASSERT_EQ(ids.front(), cls);
    ASSERT_EQ(ids.back(), sep);
    const auto middle = std::find(ids.begin(), ids.end(), sep) - ids.begin();
    ASSERT_GT(middle, 1);
    ASSERT_LT(middle, std::ssize(ids) - 2);
    for (ptrdiff_t row = 0; row < std::ssize(ids); ++row) {
      ASSERT_EQ(types[static_cast<size_t>(row)], row > middle ? 1 : 0);
    }
    const bool same_kind = (ids[1] <= b) == (ids[static_cast<size_t>(middle) + 1] <= b);
    ASSERT_TRUE(same_kind || batch.next_sentence[i] == 1);
    random += batch.next_sentence[i];
    other_kind += !same_kind;
  }
  const auto share = [&](int count) {
    return static_cast<double>(count) / static_cast<double>(batch.sequences());
  };
  // Half are random, and a run of one sentence always is; half of those are of the other kind.
  EXPECT_GT(share(random), 0.4);
  EXPECT_LT(share(random), 0.65);
  EXPECT_NEAR(share(other_kind), share(random) / 2, 0.1);
}

TEST_F(StreamTest, CorruptsSpans) {
  StreamOptions options = text("a b c d a b c d a b c d\n", Objective::span_corruption);
  options.objective.block_tokens = 20;
  const TrainingBatch batch = all(options);
  // 12 tokens: 2 of them in 1 span, at the end: 10 + sentinel + end, sentinel + 2 + end.
  EXPECT_THAT(batch.input.tokens, ElementsAre(a, b, c, d, a, b, c, d, a, b, s0, end));
  EXPECT_THAT(batch.labels, ElementsAre(s0, c, d, end));
  EXPECT_THAT(batch.target.tokens, ElementsAre(pad, s0, c, d));
  options.objective.block_tokens = 200;
  expect_error(ErrorCode::invalid_argument, ", got 4", [&] { all(options); });
}

TEST_F(StreamTest, DenoisesPermutedAndMaskedTexts) {
  StreamOptions options = text("a b c d. c c d d. b b a a\n", Objective::denoising);
  options.objective.block_tokens = 20;
  options.objective.mask_rate = 0.3;
  const TokenizerPtr tokenizer =
      std::make_shared<TestingTokenizer>(std::vector<std::string>{"a", "b", "c", "d", "d."});
  const TrainingBatch batch = all(options, tokenizer);
  EXPECT_THAT(batch.labels, ElementsAre(a, b, c, 10, c, c, d, 10, b, b, a, a, end));
  EXPECT_EQ(batch.target.tokens.front(), pad);
  EXPECT_EQ(batch.input.tokens.back(), end);
  EXPECT_LE(batch.input.rows(), 13);
  EXPECT_GE(std::count(batch.input.tokens.begin(), batch.input.tokens.end(), mask), 1);
}

TEST_F(StreamTest, ClassifiesWithTrainingLabels) {
  StreamOptions options = text("10 a\n2 b c\n10 d\n", Objective::classification);
  BatchStream training(options, bert_);
  EXPECT_THAT(training.labels(), ElementsAre("2", "10"));
  const TrainingBatch batch = all(options, bert_);
  EXPECT_THAT(batch.sequence_labels, ElementsAre(1, 0, 1));
  EXPECT_THAT(batch.input.tokens, ElementsAre(cls, a, sep, cls, b, c, sep, cls, d, sep));
  EXPECT_THAT(batch.labels, IsEmpty());
  EXPECT_EQ(label_count(batch), 3);

  StreamOptions valid = text("2 a\n3 b\n10 c\n", Objective::classification);
  valid.labels = training.labels();
  BatchStream stream(valid, bert_);
  Cursor cursor;
  const TrainingBatch checked = stream.next(cursor);
  EXPECT_THAT(checked.sequence_labels, ElementsAre(0, 1));
  EXPECT_THAT(checked.examples, ElementsAre(0, 2));
  EXPECT_EQ(stream.reports()[0][Skip::unknown_label].count, 1);
  EXPECT_EQ(stream.reports()[0][Skip::unknown_label].first, "\"3\"");
  EXPECT_EQ(stream.reports()[0].kept, 2);
  EXPECT_EQ(stream.reports()[0].tokens, 6);  // of those that are kept
}

TEST_F(StreamTest, BatchesRegressionPairs) {
  StreamOptions options;
  options.corpora = {{.files = {write("x.csv", "a,\"b c\",2.5\nd,a,0\n")}, .second_column = "2"}};
  options.objective.kind = Objective::regression;
  options.shuffle = false;
  const TrainingBatch batch = all(options, bert_);
  EXPECT_THAT(batch.scores, ElementsAre(2.5f, 0.0f));
  EXPECT_THAT(batch.input.token_types, ElementsAre(0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1));
}

TEST_F(StreamTest, TagsWords) {
  StreamOptions options;
  options.corpora = {{.files = {write("x.conll", "ab N\nc V\n\nd N\n")}}};
  options.objective.kind = Objective::tagging;
  options.shuffle = false;
  const TrainingBatch batch = all(options, bert_);
  constexpr int32_t kX = kIgnoreLabel;
  EXPECT_THAT(batch.input.tokens, ElementsAre(cls, a, ab_, c, sep, cls, d, sep));
  EXPECT_THAT(batch.labels, ElementsAre(kX, 0, kX, 1, kX, kX, 0, kX));
  options.labels = {"V"};
  BatchStream stream(options, bert_);
  Cursor cursor;
  EXPECT_THAT(stream.next(cursor).labels, ElementsAre(kX, kX, kX, 0, kX, kX, kX, kX));
  EXPECT_EQ(stream.reports()[0][Skip::unknown_label].count, 2);
}

TEST_F(StreamTest, ParsesAsTranslation) {
  StreamOptions options;
  options.corpora = {{.files = {write("x.mrg", "(S (A a) (B b))\n")}}};
  options.objective.kind = Objective::parsing;
  options.shuffle = false;
  const TokenizerPtr tokenizer =
      std::make_shared<TestingTokenizer>(std::vector<std::string>{"a", "b", "(S", "XX", ")S"});
  const TrainingBatch batch = all(options, tokenizer);
  EXPECT_THAT(batch.input.tokens, ElementsAre(6, 7, end));
  EXPECT_THAT(batch.labels, ElementsAre(8, 9, 9, 10, end));
}

TEST_F(StreamTest, MixesCorporaByTemperature) {
  StreamOptions options = pairs(400);
  options.corpora.push_back(
      {.files = {write("y.en", "a\nb\nc\nd\n"), write("y.de", "a\nb\nc\nd\n")}});
  options.temperature = 1e9;
  BatchStream stream(options, plain_);
  int64_t small = 0, all_items = 0;
  for (Cursor cursor; cursor.epoch == 0;) {
    const TrainingBatch batch = stream.next(cursor);
    small += std::count(batch.corpora.begin(), batch.corpora.end(), 1);
    all_items += batch.sequences();
  }
  EXPECT_EQ(all_items, 404);
  EXPECT_EQ(small, 202);
}

}  // namespace
}  // namespace heed
