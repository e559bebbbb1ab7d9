// Several ranks train what one does. The ranks are threads here; tests/mpirun has real ones.
//
// The sums over ranks add the same numbers in another order than one process that takes the batches
// in turn, so the two agree to rounding, not to the bit. Runs with the same ranks do.
#include <gmock/gmock.h>

#include "base/files/file_testing.h"
#include "train/ranks/ranks_testing.h"
#include "train/run/task_testing.h"
#include "train/run/trainer.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Each rank's share of a source: every size-th batch.
FunctionSource shared_source(FunctionSource source, const Ranks& ranks) {
  source.next_batch = [next = source.next_batch, rank = ranks.rank(),
                       size = ranks.size()](Cursor& cursor) {
    TrainingBatch mine;
    for (int i = 0; i < size; ++i) {
      TrainingBatch batch = next(cursor);
      if (i == rank) mine = std::move(batch);
    }
    return mine;
  };
  return source;
}

struct Setting {
  int64_t steps = 30;
  Family family = Family::encoder_decoder;
  ValidateSection validate{.every = 10};
  double learning_rate = 3e-3;
  std::function<void(const TrainProgress&)> progress{};
  const std::atomic<bool>* stop = nullptr;
  Validator validator{};
};

class DataParallelTest : public FolderTest {
 protected:
  TrainResult train(const std::string& name, const Setting& s, Ranks& ranks) {
    ModelConfig config = toy_config(s.family);
    config.dropout = config.attention_dropout = 0.1f;
    // Ranks begin alike whatever they were given: the first one's weights count.
    Network network(config, 5 + static_cast<uint64_t>(ranks.rank()));
    network.add_gradients();
    ThreadPool pool(1);
    FunctionSource source = shared_source(toy_source(s.family, ToyTask::copy, 4), ranks);
    Trainer trainer(
        {.network = network,
         .pool = pool,
         .batches = source,
         .ranks = &ranks,
         .folder = path(name),
         .settings = {.train = {.steps = s.steps,
                                .accumulate = 4,
                                .log_every = 1,
                                .checkpoint_every = 7,
                                .keep_last = 2},
                      .loss = {.label_smoothing = 0.1f},
                      .optimizer = {.learning_rate = s.learning_rate, .ema_decay = 0.9},
                      .schedule = {.warmup_steps = 10}},
         .validation = {.section = s.validate, .validator = s.validator},
         .callbacks = {
             .progress = s.progress,
             .note = [this](std::string_view text) { notes_ += std::string(text) + "\n"; },
             .stop = s.stop}});
    return trainer.run();
  }

  TrainResult run(const std::string& name, int size, const Setting& s) {
    RankHub hub(size);
    TrainResult first;
    run_ranks(hub, size, [&](Ranks& ranks) {
      const TrainResult result = train(name, s, ranks);
      EXPECT_EQ(result.rank, ranks.rank());
      EXPECT_EQ(result.ranks, size);
      if (ranks.first()) first = result;
    });
    EXPECT_EQ(hub.stopped(), size);
    return first;
  }

  // All losses by kind and step, and the count of tokens.
  std::map<std::string, double> numbers(const std::string& name) const {
    std::map<std::string, double> all;
    std::ifstream file(path(name) + "/log.jsonl");
    for (std::string line; std::getline(file, line);) {
      const std::optional<LogRecord> record = record_from_line(line);
      if (!record) continue;
      for (const auto& [key, value] : record->values) {
        if (key != "loss" && key != "tokens" && key != "accuracy" && key != "gradient_norm") {
          continue;
        }
        all[record->kind + " " + std::to_string(record->step) + " " + key] = value;
      }
    }
    return all;
  }

  void expect_close(const std::string& a, const std::string& b) const {
    const auto x = numbers(a), y = numbers(b);
    ASSERT_EQ(x.size(), y.size());
    for (const auto& [key, value] : x) {
      ASSERT_TRUE(y.contains(key)) << key;
      const double tolerance = key.ends_with("tokens") ? 0 : 2e-3 * std::abs(value);
      EXPECT_NEAR(y.at(key), value, tolerance) << key;
    }
    // Rounding is all that differs at first; only later does it grow.
    for (const char* key : {"train 1 loss", "train 2 loss", "train 1 gradient_norm"}) {
      EXPECT_NEAR(y.at(key), x.at(key), 2e-5 * std::abs(x.at(key))) << key;
    }
  }

  std::string notes_;
};

TEST_F(DataParallelTest, SeveralRanksLearnWhatOneDoes) {
  for (const Family family :
       {Family::encoder_decoder, Family::decoder_only, Family::encoder_only}) {
    const std::string name(name_of(family));
    SCOPED_TRACE(name);
    run(name + "1", 1, {.family = family});
    run(name + "2", 2, {.family = family});
    expect_close(name + "1", name + "2");
  }
  run("four", 4, {});
  expect_close("encoder_decoder1", "four");
}

TEST_F(DataParallelTest, RunsRepeatBitForBitAndGoOnSo) {
  run("whole", 2, {});
  run("again", 2, {});
  EXPECT_EQ(numbers("whole"), numbers("again"));
  EXPECT_EQ(read_text(path("whole") + "/model.safetensors"),
            read_text(path("again") + "/model.safetensors"));
  std::atomic<bool> stop = false;
  const TrainResult stopped = run("stopped", 2,
                                  {.progress =
                                       [&](const TrainProgress& p) {
                                         if (p.step == 16) stop = true;
                                       },
                                   .stop = &stop});
  EXPECT_FALSE(stopped.finished);
  EXPECT_EQ(stopped.steps, 17);  // a step later, when all have heard of it
  EXPECT_TRUE(run("stopped", 2, {}).finished);
  EXPECT_EQ(numbers("whole"), numbers("stopped"));
  EXPECT_EQ(read_text(path("whole") + "/model.safetensors"),
            read_text(path("stopped") + "/model.safetensors"));
}

TEST_F(DataParallelTest, AnotherNumberOfRanksGoesOnToo) {
  run("whole", 1, {});
  run("moved", 2, {.steps = 14});
  run("moved", 4, {.steps = 21});
  run("moved", 1, {});
  const auto whole = numbers("whole"), moved = numbers("moved");
  EXPECT_NEAR(whole.at("train 30 loss"), moved.at("train 30 loss"), 2e-3);
  EXPECT_EQ(whole.at("train 30 tokens"), moved.at("train 30 tokens"));
}

TEST_F(DataParallelTest, OneRankSpeaksAndJudgesForAll) {
  std::atomic<int> asked = 0;
  const Validator validator = [&](const ValidationRequest&) {
    ++asked;
    return ValidationScores{{{"bleu", 1.0}}, {}};
  };
  const Setting setting{.steps = 500,
                        .validate = {.every = 5, .metric = "bleu", .patience = 2},
                        .validator = validator};
  run("one", 1, setting);
  const int asked_by_one = asked.exchange(0);
  notes_.clear();
  // Never a better score: all must stop at the same step, though the first alone knows it.
  const TrainResult result = run("two", 2, setting);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.steps, 15);
  EXPECT_EQ(asked, asked_by_one);
  EXPECT_THAT(notes_, HasSubstr("stopping early"));
  EXPECT_EQ(notes_.find("stopping early"), notes_.rfind("stopping early"));
}

}  // namespace
}  // namespace heed
