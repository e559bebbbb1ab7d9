// The step of every objective: gradients that add up over parts, and the same bits on any threads.
#include "train/run/step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/files/file_testing.h"
#include "base/philox.h"
#include "model/presets.h"
#include "train/optimizer/optimizer.h"

namespace heed {
namespace {

constexpr int kVocabulary = 23;

ModelConfig small(const std::string& name, Head head, int labels = 0) {
  ModelConfig c = preset(name);
  c.vocabulary = kVocabulary, c.width = 16, c.heads = 2, c.kv_heads = 0, c.head_dim = 0, c.ffn = 24;
  c.encoder_layers = c.decoder_layers = 2;
  c.max_positions = 32;
  c.head = head, c.labels = labels;
  c.pad_id = c.bos_id = c.eos_id = c.decoder_start_id = -1, c.pad_frozen = false;
  return c;
}

void add_sequence(Rows& rows, Random& random, int length) {
  for (int i = 0; i < length; ++i) {
    rows.tokens.push_back(static_cast<int32_t>(random.below(kVocabulary)));
  }
  rows.end_sequence();
}

enum class Task {
  translation,
  causal_lm,
  masked_lm,
  next_sentence,
  classification,
  regression,
  tagging
};

TrainingBatch make_batch(Task task, uint64_t seed, int sequences = 5) {
  Random random({.seed = seed});
  TrainingBatch b;
  for (int s = 0; s < sequences; ++s) {
    add_sequence(b.input, random, 3 + static_cast<int>(random.below(6)));
    if (task == Task::translation) {
      add_sequence(b.target, random, 2 + static_cast<int>(random.below(6)));
    }
    if (task == Task::classification) {
      b.sequence_labels.push_back(static_cast<int32_t>(random.below(3)));
    }
    if (task == Task::regression) b.scores.push_back(random.uniform());
    if (task == Task::next_sentence) {
      b.next_sentence.push_back(static_cast<int32_t>(random.below(2)));
    }
  }
  const int64_t rows = b.target.empty() ? b.input.rows() : b.target.rows();
  const int64_t classes = task == Task::tagging ? 4 : kVocabulary;
  const bool masked = task == Task::masked_lm || task == Task::next_sentence;
  if (task != Task::classification && task != Task::regression) {
    for (int64_t r = 0; r < rows; ++r) {
      const auto label = static_cast<int32_t>(random.below(static_cast<uint64_t>(classes)));
      b.labels.push_back(masked && r % 5 != 0 ? kIgnoreLabel : label);
    }
  }
  return b;
}

ModelConfig config_for(Task task) {
  switch (task) {
    case Task::translation:
      return small("transformer-tiny", Head::language_model);
    case Task::causal_lm:
      return small("gpt2", Head::language_model);
    case Task::masked_lm:
      return small("bert-tiny", Head::masked_lm);
    case Task::next_sentence: {
      ModelConfig c = small("bert-tiny", Head::masked_lm);
      c.pooler = true;
      return c;
    }
    case Task::classification:
      return small("bert-tiny", Head::classifier, 3);
    case Task::regression:
      return small("bert-tiny", Head::regression, 1);
    case Task::tagging:
      return small("bert-tiny", Head::token_classifier, 4);
  }
  return {};
}

class StepTest : public testing::TestWithParam<Task> {};

struct Trained {
  std::vector<double> losses;
  std::vector<float> weights;
};

Trained train(Task task, int threads, int steps, float dropout, const Network* teacher = nullptr) {
  ModelConfig config = config_for(task);
  config.dropout = config.attention_dropout = config.embedding_dropout = dropout;
  Network network(config, 7);
  network.add_gradients();
  ThreadPool pool(threads);
  StepRunner runner(
      {.network = network, .pool = pool, .teacher = teacher, .loss = {.label_smoothing = 0.1f}});
  Parameters& p = network.parameters();
  Optimizer optimizer(p, {});
  Trained result;
  for (int step = 1; step <= steps; ++step) {
    const TrainingBatch batch = make_batch(task, static_cast<uint64_t>(1 + step % 2));
    GradientStep gradients(p);
    result.losses.push_back(
        runner.train(gradients, batch, count_labels(batch), {.seed = 3, .step = step}).loss());
    gradients.finish();
    optimizer.update(pool, 3e-3, 1);
  }
  result.weights.assign(p.all_values().begin(), p.all_values().end());
  return result;
}

TEST_P(StepTest, GivesTheSameBitsOnOneAndTwoThreads) {
  const Trained one = train(GetParam(), 1, 4, 0.1f), two = train(GetParam(), 2, 4, 0.1f);
  EXPECT_EQ(one.losses, two.losses);
  EXPECT_EQ(one.weights, two.weights);
}

TEST_P(StepTest, LearnsTwoBatchesByHeart) {
  const Trained trained = train(GetParam(), 2, 60, 0);
  EXPECT_LT(trained.losses.back(), 0.7 * trained.losses.front());
}

// The loss is a mean over all labels of a step, however the step was cut into batches.
TEST_P(StepTest, PartsOfAStepAddUpToTheWhole) {
  ModelConfig config = config_for(GetParam());
  config.dropout = config.attention_dropout = config.embedding_dropout = 0;
  Network network(config, 7);
  network.add_gradients();
  ThreadPool pool(2);
  StepRunner runner({.network = network, .pool = pool});
  Parameters& p = network.parameters();
  const TrainingBatch a = make_batch(GetParam(), 1), b = make_batch(GetParam(), 2, 2);
  LabelCounts both = count_labels(a);
  both += count_labels(b);

  const auto gradients_of = [&](const TrainingBatch& batch, const LabelCounts& counts) {
    GradientStep gradients(p);
    runner.train(gradients, batch, counts, {});
    gradients.finish();
    return std::vector<float>(p.all_gradients().begin(), p.all_gradients().end());
  };
  const std::vector<float> of_a = gradients_of(a, both), of_b = gradients_of(b, both);
  GradientStep gradients(p);
  StepLoss loss = runner.train(gradients, a, both, {.part = 0});
  loss += runner.train(gradients, b, both, {.part = 1});
  gradients.finish();
  for (size_t i = 0; i < of_a.size(); ++i) {
    ASSERT_NEAR(p.all_gradients()[i], of_a[i] + of_b[i], 1e-6) << i;
  }
  // And evaluation, which takes the logits another way, finds the same loss.
  Evaluation evaluation = runner.evaluate(a);
  evaluation += runner.evaluate(b);
  EXPECT_NEAR(evaluation.loss.loss(), loss.loss(), 1e-5 * loss.loss());
}

TEST_P(StepTest, MemoryIsKnownBefore) {
  Network network(config_for(GetParam()), 7);
  network.add_gradients();
  ThreadPool pool(2);
  StepRunner runner({.network = network, .pool = pool});
  const TrainingBatch few = make_batch(GetParam(), 1, 2), many = make_batch(GetParam(), 1, 40);
  EXPECT_LT(runner.training_bytes(few), runner.training_bytes(many));
  EXPECT_LT(runner.evaluation_bytes(many), runner.training_bytes(many));
  GradientStep gradients(network.parameters());
  runner.train(gradients, many, count_labels(many), {});
  EXPECT_GE(runner.arena_bytes(), runner.training_bytes(many));
}

// Moves tokens between sequences: the rows, the sequences and the longest one stay as they are.
void move_tokens(Random& random, Rows& rows) {
  std::vector<int32_t> lengths;
  for (size_t s = 1; s < rows.offsets.size(); ++s) {
    lengths.push_back(rows.offsets[s] - rows.offsets[s - 1]);
  }
  if (lengths.size() < 2) return;
  const int32_t longest = *std::ranges::max_element(lengths);
  for (int i = 0; i < 20; ++i) {
    int32_t& from = lengths[random.below(lengths.size())];
    int32_t& to = lengths[random.below(lengths.size())];
    if (from > 1 && from < longest && to < longest) --from, ++to;
  }
  std::ranges::reverse(lengths);
  for (size_t s = 0; s < lengths.size(); ++s) {
    rows.offsets[s + 1] = rows.offsets[s] + lengths[s];
  }
}

// A plan from the cache must be what a dry run of this very batch would give.
TEST_P(StepTest, CachedPlansAreThoseOfADryRun) {
  ModelConfig config = config_for(GetParam());
  std::vector<ModelConfig> variants(3, config);
  variants[1].position = Position::t5_bias;
  variants[2].position = Position::rope;
  variants[2].attention = AttentionSpan::sliding_window, variants[2].windows = {4};
  Random random({.seed = 9});
  for (const ModelConfig& c : variants) {
    for (const GradientMemory memory : {GradientMemory::full, GradientMemory::pooled}) {
      Network network(c, 7);
      network.add_gradients(memory);
      ThreadPool pool(2);
      StepRunner runner({.network = network, .pool = pool});
      for (int i = 0; i < 12; ++i) {
        network.set_activation_checkpointing(i % 3 == 2);
        TrainingBatch batch =
            make_batch(GetParam(), 1 + random.below(3), static_cast<int>(1 + random.below(40)));
        EXPECT_EQ(runner.plan(batch), runner.measure(batch));
        move_tokens(random, batch.input);
        move_tokens(random, batch.target);
        const GradientPlan measured = runner.measure(batch);
        EXPECT_EQ(runner.plan(batch), measured) << "seed 9, batch " << i;
      }
    }
  }
}

// What backward needs again is computed again, to the bit; dropout too.
TEST_P(StepTest, RecomputedLayersGiveTheSameBitsInLessMemory) {
  ModelConfig config = config_for(GetParam());
  config.encoder_layers = config.decoder_layers = 4;
  config.dropout = config.attention_dropout = config.embedding_dropout = 0.2f;
  config.activation_dropout = 0.1f;
  struct Run {
    size_t bytes;
    double loss;
    std::vector<float> gradients;
  };
  const TrainingBatch batch = make_batch(GetParam(), 1, 60);
  const auto run = [&](const ModelConfig& c, bool recompute, int threads) {
    Network network(c, 7);
    network.add_gradients();
    network.set_activation_checkpointing(recompute);
    ThreadPool pool(threads);
    StepRunner runner({.network = network, .pool = pool});
    Parameters& p = network.parameters();
    GradientStep gradients(p);
    StepLoss loss = runner.train(gradients, batch, count_labels(batch), {.seed = 5, .step = 2});
    loss += runner.train(gradients, batch, count_labels(batch), {.seed = 5, .step = 2, .part = 1});
    gradients.finish();
    return Run{runner.training_bytes(batch),
               loss.loss(),
               {p.all_gradients().begin(), p.all_gradients().end()}};
  };
  std::vector<ModelConfig> variants(3, config);
  variants[1].position = Position::rope, variants[1].norm = NormKind::rms_norm;
  variants[1].norm_place = NormPlace::pre, variants[1].final_norm = true;
  variants[1].norm_bias = false, variants[1].kv_heads = 1;
  variants[2].position = Position::t5_bias, variants[2].ffn_kind = FfnKind::gated;
  variants[2].activation = Activation::silu;
  for (const ModelConfig& c : variants) {
    SCOPED_TRACE(name_of(c.position));
    const Run kept = run(c, false, 1), again = run(c, true, 2);
    EXPECT_EQ(again.loss, kept.loss);
    EXPECT_EQ(again.gradients, kept.gradients);
    EXPECT_LT(again.bytes, kept.bytes * 2 / 3);
  }
}

// Each weight is updated when its gradient is final: no later backward may read it again.
TEST_P(StepTest, UpdatingInBackwardGivesTheSameBitsInLessMemory) {
  struct Run {
    size_t bytes;
    std::vector<double> numbers;
    std::vector<float> weights;
  };
  const TrainingBatch batch = make_batch(GetParam(), 1, 3);
  const auto run = [&](const ModelConfig& config, GradientMemory memory, bool recompute) {
    const bool pooled = memory == GradientMemory::pooled;
    Network network(config, 7);
    network.add_gradients(memory);
    network.set_activation_checkpointing(recompute);
    ThreadPool pool(2);
    StepRunner runner({.network = network, .pool = pool});
    Parameters& p = network.parameters();
    Optimizer optimizer(p, {});
    Run result{runner.training_bytes(batch) + (pooled ? 0 : p.all_values().size_bytes()), {}, {}};
    for (int step = 1; step <= 3; ++step) {
      const StepRunner::Place place{.seed = 5, .step = step};
      GradientStep gradients(p);
      if (pooled) {
        // As in a dry run: the gradients are discarded.
        runner.train(gradients, batch, count_labels(batch), place);
        optimizer.begin_update(pool, 3e-3);
        const StepLoss loss =
            runner.train(gradients, batch, count_labels(batch), place,
                         {.use = [&](size_t weight) { optimizer.update_weight(pool, weight); }});
        result.numbers.push_back(loss.loss());
        result.numbers.push_back(optimizer.finish_update(pool));
      } else {
        result.numbers.push_back(runner.train(gradients, batch, count_labels(batch), place).loss());
        gradients.finish();
        result.numbers.push_back(optimizer.gradient_norm(pool));
        optimizer.update(pool, 3e-3, 1);
      }
    }
    result.weights.assign(p.all_values().begin(), p.all_values().end());
    return result;
  };
  ModelConfig config = config_for(GetParam());
  config.dropout = config.attention_dropout = 0.1f;
  config.encoder_layers = config.decoder_layers = 3;
  std::vector<ModelConfig> variants(3, config);
  variants[1].position = Position::t5_bias;  // a table that all layers share
  variants[2].norm_place = NormPlace::pre, variants[2].final_norm = true;
  variants[2].ffn_kind = FfnKind::gated, variants[2].activation = Activation::silu;
  for (const ModelConfig& c : variants) {
    for (const bool recompute : {false, true}) {
      SCOPED_TRACE(std::string(name_of(c.position)) + (recompute ? ", recomputed" : ""));
      const Run full = run(c, GradientMemory::full, recompute);
      const Run pooled = run(c, GradientMemory::pooled, recompute);
      EXPECT_EQ(pooled.numbers, full.numbers);
      EXPECT_EQ(pooled.weights, full.weights);
      EXPECT_LT(pooled.bytes, full.bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, StepTest,
                         testing::Values(Task::translation, Task::causal_lm, Task::masked_lm,
                                         Task::next_sentence, Task::classification,
                                         Task::regression, Task::tagging));

// A regression batch has scores and no class labels; the global token must not depend on which of
// the two a batch holds.
TEST(Step, LongformerRegressionTrainsWithTheGlobalTokensOfInference) {
  ModelConfig config = small("longformer-base", Head::regression, 1);
  config.windows = {2};
  config.dropout = config.attention_dropout = config.embedding_dropout = 0;
  Network network(config, 7);
  network.add_gradients();
  for (float& w : network.parameters().all_values()) w *= 3;  // scores that depend on attention
  const TrainingBatch batch = make_batch(Task::regression, 1);
  const Batch input{batch.input.tokens, batch.input.positions, batch.input.token_types,
                    batch.input.offsets};
  ThreadPool pool(1);
  Arena arena(size_t{4} << 20);
  const auto inference_loss = [&](const GlobalTokens* global_tokens) {
    Ctx ctx{pool, arena};
    const Transformer& t = network.transformer();
    const Var hidden = t.hidden(ctx, {.source = input, .global_tokens = global_tokens});
    const Var scores = t.classify(ctx, hidden, input);
    const ConstMat references(batch.scores.data(), scores.rows(), scores.cols());
    return squared_error(ctx, scores, references, 1).sum;
  };
  const double expected = inference_loss(nullptr);
  const GlobalTokens none(input, {});
  ASSERT_NE(expected, inference_loss(&none));

  StepRunner runner({.network = network, .pool = pool});
  GradientStep gradients(network.parameters());
  const StepLoss trained =
      runner.train(gradients, batch, count_labels(batch), {.seed = 1, .step = 1});
  ASSERT_EQ(trained.parts.size(), 1U);
  EXPECT_EQ(trained.parts[0].sum, expected);
  EXPECT_EQ(runner.evaluate(batch).loss.parts[0].sum, expected);
}

TEST(Step, FollowsATeacher) {
  for (const Task task : {Task::masked_lm, Task::causal_lm, Task::translation}) {
    const Network teacher(config_for(task), 99);
    const Trained one = train(task, 1, 40, 0, &teacher), two = train(task, 2, 40, 0, &teacher);
    EXPECT_EQ(one.losses, two.losses);
    EXPECT_LT(one.losses.back(), 0.9 * one.losses.front());
  }
}

TEST(Step, ATeacherThatIsItselfHasNothingToAdd) {
  ModelConfig config = config_for(Task::masked_lm);
  config.dropout = config.attention_dropout = config.embedding_dropout = 0;
  const Network teacher(config, 7);
  Network student(config, 7);
  student.add_gradients();
  ThreadPool pool(1);
  StepRunner runner({.network = student, .pool = pool, .teacher = &teacher});
  const TrainingBatch batch = make_batch(Task::masked_lm, 1);
  GradientStep gradients(student.parameters());
  const StepLoss loss = runner.train(gradients, batch, count_labels(batch), {});
  ASSERT_EQ(loss.parts.size(), 3u);
  EXPECT_EQ(loss.parts[0].kind, LossKind::soft_targets);
  EXPECT_NEAR(loss.parts[0].mean(), 0, 1e-5);
  EXPECT_GT(loss.parts[1].mean(), 1);  // the labels are random
  EXPECT_EQ(loss.parts[2].kind, LossKind::cosine);
  EXPECT_NEAR(loss.parts[2].mean(), 0, 1e-5);
}

// A batch with all its sequences once more.
TrainingBatch written_twice(Task task, uint64_t seed) {
  const TrainingBatch once = make_batch(task, seed);
  TrainingBatch b = once;
  for (auto [rows, again] : {std::pair{&b.input, &once.input}, {&b.target, &once.target}}) {
    for (int64_t s = 0; s < again->sequences(); ++s) {
      const auto at = static_cast<size_t>(s);
      rows->tokens.insert(rows->tokens.end(), again->tokens.begin() + again->offsets[at],
                          again->tokens.begin() + again->offsets[at + 1]);
      rows->end_sequence();
    }
  }
  b.labels.insert(b.labels.end(), once.labels.begin(), once.labels.end());
  b.next_sentence.insert(b.next_sentence.end(), once.next_sentence.begin(),
                         once.next_sentence.end());
  return b;
}

constexpr Task kWithWords[] = {Task::translation, Task::causal_lm, Task::masked_lm,
                               Task::next_sentence};

// With almost no weight of the divergence, R-Drop is the mean over a batch that holds all twice.
TEST(Step, ReadsTwiceWithRDrop) {
  for (const Task task : kWithWords) {
    SCOPED_TRACE(static_cast<int>(task));
    ModelConfig config = config_for(task);
    config.dropout = config.attention_dropout = config.embedding_dropout = 0.2f;
    Network network(config, 7);
    network.add_gradients();
    ThreadPool pool(2);
    Parameters& p = network.parameters();
    const auto gradients_of = [&](const TrainingBatch& batch, const LossOptions& options,
                                  StepLoss& loss, size_t& bytes) {
      StepRunner runner({.network = network, .pool = pool, .loss = options});
      bytes = runner.training_bytes(batch);
      GradientStep gradients(p);
      loss = runner.train(gradients, batch, count_labels(batch), {.seed = 5, .step = 2});
      gradients.finish();
      return std::vector<float>(p.all_gradients().begin(), p.all_gradients().end());
    };
    StepLoss twins, plain;
    size_t twin_bytes = 0, plain_bytes = 0;
    const std::vector<float> of_twins = gradients_of(
        make_batch(task, 1), {.label_smoothing = 0.1f, .r_drop = 1e-9f}, twins, twin_bytes);
    const std::vector<float> of_plain =
        gradients_of(written_twice(task, 1), {.label_smoothing = 0.1f}, plain, plain_bytes);
    EXPECT_NEAR(twins.loss(), plain.loss(), 1e-6 * plain.loss());
    for (size_t i = 0; i < of_plain.size(); ++i) ASSERT_NEAR(of_twins[i], of_plain[i], 1e-6) << i;
    EXPECT_LT(plain_bytes, twin_bytes + twin_bytes / 20);
    EXPECT_LT(twin_bytes, plain_bytes + plain_bytes / 20);
    ASSERT_EQ(twins.parts[1].kind, LossKind::r_drop);
    EXPECT_GT(twins.parts[1].mean(), 1e-4) << "other dropout, other answers";
    EXPECT_EQ(2 * twins.parts[1].count, twins.parts[0].count);
  }
}

TEST(Step, RDropBringsTheAnswersTogether) {
  for (const Task task : {Task::translation, Task::causal_lm}) {
    SCOPED_TRACE(static_cast<int>(task));
    const auto divergence_after = [&](float r_drop, int threads) {
      ModelConfig config = config_for(task);
      config.dropout = 0.3f;
      Network network(config, 7);
      network.add_gradients();
      ThreadPool pool(threads);
      StepRunner runner({.network = network, .pool = pool, .loss = {.r_drop = r_drop}});
      Parameters& p = network.parameters();
      Optimizer optimizer(p, {});
      double sum = 0;  // of the last steps
      for (int step = 1; step <= 160; ++step) {
        const TrainingBatch batch = make_batch(task, static_cast<uint64_t>(1 + step % 2));
        GradientStep gradients(p);
        const StepLoss loss =
            runner.train(gradients, batch, count_labels(batch), {.seed = 3, .step = step});
        if (step > 120) sum += loss.parts[1].mean();
        gradients.finish();
        optimizer.update(pool, 3e-3, 1);
      }
      return sum;
    };
    const double tightly = divergence_after(5, 2);
    EXPECT_EQ(tightly, divergence_after(5, 1)) << "on one thread";
    EXPECT_LT(tightly, 0.6 * divergence_after(1e-9f, 2));
  }
}

TEST(Step, RDropNeedsWordsAndDropout) {
  ThreadPool pool(1);
  const auto refused = [&](const ModelConfig& config, const std::string& why) {
    Network network(config, 1);
    expect_error(ErrorCode::invalid_argument, why,
                 [&] { StepRunner({.network = network, .pool = pool, .loss = {.r_drop = 5}}); });
  };
  ModelConfig config = config_for(Task::classification);
  config.dropout = 0.1f;
  refused(config, "output distributions");
  config = config_for(Task::causal_lm);
  config.dropout = config.attention_dropout = config.embedding_dropout = 0;
  refused(config, "dropout");
  config.dropout = 0.1f, config.logits_soft_cap = 30;
  refused(config, "logits_soft_cap");
  config.logits_soft_cap = 0;
  const Network teacher(config, 2);
  Network student(config, 1);
  expect_error(ErrorCode::invalid_argument, "teacher", [&] {
    StepRunner({.network = student, .pool = pool, .teacher = &teacher, .loss = {.r_drop = 5}});
  });
}

TEST(Step, ATeacherMustFit) {
  const Network teacher(small("gpt2", Head::language_model), 1);
  Network student(small("bert-tiny", Head::masked_lm), 1);
  ThreadPool pool(1);
  expect_error(ErrorCode::invalid_argument, "encoder_only",
               [&] { StepRunner({.network = student, .pool = pool, .teacher = &teacher}); });
  ModelConfig wide = small("bert-tiny", Head::masked_lm);
  wide.width = 32;
  const Network wide_teacher(wide, 1);
  expect_error(ErrorCode::invalid_argument, "cosine_weight",
               [&] { StepRunner({.network = student, .pool = pool, .teacher = &wide_teacher}); });
}

TEST(Evaluation, CorrelatesAsPearsonDid) {
  Evaluation e;
  for (const auto& [x, y] : {std::pair{1.0, 2.0}, {2.0, 4.0}, {3.0, 5.0}, {4.0, 4.0}}) {
    e.n += 1, e.x += x, e.y += y, e.xx += x * x, e.yy += y * y, e.xy += x * y;
  }
  // means 2.5 and 3.75; Σ dx dy = 3.5, Σ dx² = 5, Σ dy² = 4.75
  EXPECT_NEAR(e.pearson().value(), 3.5 / std::sqrt(5 * 4.75), 1e-12);
  EXPECT_FALSE(Evaluation{}.pearson());
  EXPECT_FALSE(Evaluation{}.accuracy());
}

}  // namespace
}  // namespace heed
