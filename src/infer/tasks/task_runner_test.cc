#include "infer/tasks/task_runner.h"

#include <thread>

#include "infer/tasks/task_testing.h"

namespace heed {
namespace {

class TaskRunnerTest : public TaskTest {};

Encoding encoding_of(std::vector<int32_t> ids, std::vector<uint8_t> special) {
  Encoding encoding;
  encoding.ids = std::move(ids), encoding.is_special = std::move(special);
  encoding.offsets.resize(encoding.ids.size());
  encoding.types.resize(encoding.ids.size());
  return encoding;
}

TEST(TruncateEncoding, CutsTheLongerTextAndKeepsTheTemplate) {
  Encoding pair = encoding_of({2, 11, 12, 13, 14, 3, 21, 22, 3}, {1, 0, 0, 0, 0, 1, 0, 0, 1});
  EXPECT_FALSE(truncate(pair, 9));
  EXPECT_TRUE(truncate(pair, 7));
  EXPECT_EQ(pair.ids, (std::vector<int32_t>{2, 11, 12, 3, 21, 22, 3}));
  EXPECT_TRUE(truncate(pair, 6));
  EXPECT_EQ(pair.ids, (std::vector<int32_t>{2, 11, 3, 21, 22, 3}));
  EXPECT_TRUE(truncate(pair, 2));
  EXPECT_EQ(pair.ids, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(pair.offsets.size(), size_t{2});
}

TEST_F(TaskRunnerTest, KnowsHowMuchAModelReads) {
  ModelConfig config = tiny(Head::none);
  EXPECT_EQ(TaskRunner(make(config), {}).max_tokens(), 24);
  EXPECT_EQ(TaskRunner(make(config), {}).max_tokens(100), 24);
  EXPECT_EQ(TaskRunner(make(config), {.max_tokens = 9}).max_tokens(), 9);
  EXPECT_EQ(TaskRunner(make(config), {.max_tokens = 9}).max_tokens(7), 7);
  config.position = Position::rope;
  config.embedding_norm = false;
  EXPECT_EQ(TaskRunner(make(config), {}).max_tokens(), 24);
  EXPECT_EQ(TaskRunner(make(config), {.max_tokens = 100}).max_tokens(), 100);
}

TEST_F(TaskRunnerTest, SaysWhatElseAModelIsFor) {
  ModelConfig config = tiny(Head::language_model);
  config.family = Family::encoder_decoder;
  config.token_types = 0, config.pooler = false, config.embedding_norm = false;
  config.decoder_layers = 2, config.decoder_start_id = 0;
  try {
    Classifier classifier(make(config));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "commands for this model: translate, score, embed, attend");
  }
}

TEST_F(TaskRunnerTest, MayBeUsedFromSeveralThreads) {
  const Embedder embedder(make(tiny(Head::none)), {.threads = 2, .batch_tokens = 64});
  const std::vector<TaskInput> inputs = many_texts(30);
  const std::vector<Embedded> expected = embedder.embed(inputs);
  std::vector<std::vector<Embedded>> found(4);
  {
    std::vector<std::jthread> threads;
    for (std::vector<Embedded>& own : found) {
      threads.emplace_back([&] { own = embedder.embed(inputs); });
    }
  }
  for (const std::vector<Embedded>& own : found) {
    for (size_t i = 0; i < inputs.size(); ++i) EXPECT_EQ(own[i].vector, expected[i].vector);
  }
}

TEST_F(TaskRunnerTest, BatchesFillTheBudgetLongestFirst) {
  TaskRunner runner(make(tiny(Head::none)), {.threads = 1, .batch_tokens = 10});
  std::vector<TaskSequence> sequences;
  for (const size_t length : {3, 0, 5, 5, 12, 2})
    sequences.push_back({.ids = std::vector<int32_t>(length, 6)});
  std::vector<std::vector<size_t>> planned, run;
  runner.run(sequences, {}, [&](Ctx& ctx, const TaskBatch& batch) {
    (ctx.measuring() ? planned : run).push_back(batch.members);
    const Var hidden = runner.hidden(ctx, batch);
    EXPECT_EQ(hidden.rows(), static_cast<int64_t>(batch.source.tokens.size()));
  });
  EXPECT_EQ(run, (std::vector<std::vector<size_t>>{{4}, {2, 3}, {0, 5}}));
  EXPECT_EQ(planned, run);
}

TEST_F(TaskRunnerTest, StopsBetweenBatchesWhenItIsCancelled) {
  TaskRunner runner(make(tiny(Head::none)), {.threads = 1, .batch_tokens = 10});
  const std::vector<TaskSequence> sequences(5, {.ids = std::vector<int32_t>(10, 6)});
  int batches = 0;
  expect_error(ErrorCode::cancelled, "cancelled", [&] {
    runner.run(
        sequences, [&] { return batches == 2; },
        [&](Ctx& ctx, const TaskBatch& batch) {
          batches += ctx.measuring() ? 0 : 1;
          runner.hidden(ctx, batch);
        });
  });
  EXPECT_EQ(batches, 2);
  // And it can be used again.
  const Embedder embedder(make(tiny(Head::none)), {.threads = 1});
  expect_error(ErrorCode::cancelled, "cancelled",
               [&] { embedder.embed(many_texts(3), {}, [] { return true; }); });
  EXPECT_EQ(embedder.embed(many_texts(3)).size(), size_t{3});
}

}  // namespace
}  // namespace heed
