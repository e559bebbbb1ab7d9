// The loop: what it writes, when it stops, and that killing it changes nothing.
#include "train/run/trainer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/files/file_testing.h"
#include "train/run/task_testing.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TrainerTest : public FolderTest {
 protected:
  struct Setting {
    int64_t steps = 30;
    int threads = 1;
    double learning_rate = 3e-3;
    double ema_decay = 0;
    MomentType moments = MomentType::f32;
    TrainSection train{.checkpoint_every = 7, .keep_last = 2};
    ValidateSection validate{.every = 10};
    Validator validator{};
    const std::atomic<bool>* stop = nullptr;
    std::function<void(const TrainProgress&)> progress{};
    bool full_gradients = false;           // where they could be pooled
    std::vector<TrainSetting> settings{};  // beside the steps
    FunctionSource source = toy_source(Family::encoder_decoder, ToyTask::copy, 4);
  };

  TrainResult run(const std::string& name, Setting s) {
    ModelConfig config = toy_config(Family::encoder_decoder);
    config.dropout = config.attention_dropout = 0.1f;  // random numbers must resume too
    Network network(config, 5);
    const OptimizerOptions optimizer{
        .learning_rate = s.learning_rate, .ema_decay = s.ema_decay, .moments = s.moments};
    network.add_gradients(s.full_gradients ? GradientMemory::full
                                           : gradient_memory(optimizer, s.train.accumulate));
    ThreadPool pool(s.threads);
    s.train.steps = s.steps, s.train.log_every = 1;
    s.settings.push_back({"train", "steps", std::to_string(s.steps), "test", "steps"});
    Trainer trainer(
        {.network = network,
         .pool = pool,
         .batches = s.source,
         .folder = path(name),
         .settings = {.train = s.train,
                      .loss = {.label_smoothing = 0.1f},
                      .optimizer = optimizer,
                      .schedule = {.warmup_steps = 10},
                      .list = s.settings},
         .validation = {.section = s.validate, .validator = s.validator},
         .callbacks = {
             .progress = s.progress,
             .note = [this](std::string_view text) { notes_ += std::string(text) + "\n"; },
             .stop = s.stop}});
    return trainer.run();
  }

  // Every number that training gave, without those that clocks decide.
  std::vector<std::string> numbers(const std::string& name) const {
    std::map<std::pair<int64_t, std::string>, std::string> by_step;
    std::ifstream file(path(name) + "/log.jsonl");
    for (std::string line; std::getline(file, line);) {
      std::optional<LogRecord> record = record_from_line(line);
      if (!record || (record->kind != "train" && record->kind != "validate")) continue;
      std::erase_if(record->values, [](const auto& value) {
        return value.first == "seconds" || value.first == "tokens_per_second";
      });
      const std::string text = to_json_line(*record);
      const auto [place, fresh] = by_step.emplace(std::pair(record->step, record->kind), text);
      EXPECT_EQ(place->second, text);  // a step that came twice gave the same
    }
    std::vector<std::string> list;
    for (const auto& [key, text] : by_step) list.push_back(text);
    return list;
  }

  std::vector<std::string> checkpoint_names(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path(name) + "/checkpoints")) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  void expect_kills_change_nothing(const std::string& whole, const std::string& killed,
                                   const Setting& setting);

  std::string notes_;
};

TEST_F(TrainerTest, WritesAllItPromises) {
  const TrainResult result = run("run", {});
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.steps, 30);
  EXPECT_GT(result.planned_bytes, 0);
  EXPECT_TRUE(result.validation.contains("accuracy"));
  for (const char* file : {"config.json", "model.safetensors", "log.jsonl", "report.html"}) {
    EXPECT_TRUE(fs::exists(path("run") + "/" + file)) << file;
  }
  // The last two, and the best.
  const auto names = checkpoint_names("run");
  EXPECT_THAT(names, testing::Contains("step-30"));
  EXPECT_THAT(names, testing::Contains("step-28"));
  EXPECT_LE(names.size(), 3u);
  const std::string report = read_text(path("run") + "/report.html");
  EXPECT_THAT(report, HasSubstr("<svg"));
  EXPECT_THAT(report, HasSubstr("final accuracy"));
  EXPECT_EQ(report.find("http"), std::string::npos);  // nothing to load from elsewhere
  size_t events = 0;
  for (const auto& entry : fs::directory_iterator(path("run/events"))) {
    for (const EventScalar& s : read_event_scalars(entry.path())) events += s.tag == "train/loss";
  }
  EXPECT_EQ(events, 30u);
  EXPECT_EQ(numbers("run").size(), 30u + 3);
  // A checkpoint is a model folder, and so is what is left at the end.
  EXPECT_EQ(Network::load(path("run")).config().vocabulary, kToyVocabulary);
  EXPECT_EQ(Network::load(path("run") + "/checkpoints/step-30").config().width, 32);
}

void TrainerTest::expect_kills_change_nothing(const std::string& whole, const std::string& killed,
                                              const Setting& setting) {
  run(whole, setting);
  Random random({.seed = 11});
  int kills = 0;
  for (int attempt = 0;; ++attempt) {
    ASSERT_LT(attempt, 200);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        run(killed, setting);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
      _exit(0);
    }
    // Sooner or later, and at last never: from before the first step to after the last one.
    const auto patience = static_cast<useconds_t>(random.below(30'000 + 3'000 * uint64_t(attempt)));
    usleep(patience);
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == 0) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    ++kills;
  }
  EXPECT_GT(kills, 0);
  EXPECT_EQ(numbers(killed), numbers(whole));
  for (const char* file : {"/model.safetensors", "/checkpoints/step-30/training.safetensors"}) {
    EXPECT_EQ(read_text(path(killed) + file), read_text(path(whole) + file)) << file;
  }
}

// A step of one batch updates in backward, a step of two after it.
TEST_F(TrainerTest, KilledAtAnyMomentItGoesOnWithTheSameBits) {
  for (const int batches : {1, 2}) {
    SCOPED_TRACE(batches);
    const std::string number = std::to_string(batches);
    expect_kills_change_nothing("whole" + number, "killed" + number,
                                {.ema_decay = 0.9,
                                 .moments = batches == 1 ? MomentType::bf16 : MomentType::f32,
                                 .train = {.accumulate = batches, .checkpoint_every = 3}});
  }
}

TEST_F(TrainerTest, UpdatingInBackwardChangesNothing) {
  const TrainResult full = run("full", {.ema_decay = 0.9, .full_gradients = true});
  const TrainResult pooled = run("pooled", {.threads = 2, .ema_decay = 0.9});
  EXPECT_EQ(numbers("pooled"), numbers("full"));
  EXPECT_EQ(read_text(path("pooled") + "/checkpoints/step-30/training.safetensors"),
            read_text(path("full") + "/checkpoints/step-30/training.safetensors"));
  EXPECT_LT(pooled.planned_bytes, full.planned_bytes);
}

TEST_F(TrainerTest, ThreadsChangeNothing) {
  run("one", {.threads = 1});
  run("two", {.threads = 2});
  EXPECT_EQ(numbers("one"), numbers("two"));
  EXPECT_EQ(read_text(path("one") + "/model.safetensors"),
            read_text(path("two") + "/model.safetensors"));
}

TEST_F(TrainerTest, StopsWhenAskedAndGoesOn) {
  run("whole", {});
  std::atomic<bool> stop = false;
  const TrainResult stopped =
      run("stopped", {.stop = &stop, .progress = [&](const TrainProgress& p) {
                        if (p.step == 17) stop = true;
                      }});
  EXPECT_FALSE(stopped.finished);
  EXPECT_EQ(stopped.steps, 17);
  EXPECT_THAT(notes_, HasSubstr("stopped at step 17"));
  EXPECT_TRUE(run("stopped", {}).finished);
  EXPECT_THAT(notes_, HasSubstr("resuming at step 17 of 30"));
  EXPECT_EQ(numbers("stopped"), numbers("whole"));
  // And once more: there is nothing left to do, and nothing is lost.
  const TrainResult again = run("stopped", {});
  EXPECT_TRUE(again.finished);
  EXPECT_EQ(again.steps, 30);
  // More steps are allowed, with a note.
  EXPECT_EQ(run("stopped", {.steps = 32}).steps, 32);
  EXPECT_THAT(notes_, HasSubstr("train.steps was 30, is now 32"));
}

// A checkpoint from before a key existed was made with what the key is by default.
TEST_F(TrainerTest, WhatACheckpointDoesNotKnowWasAsByDefault) {
  run("run", {.steps = 14});
  notes_.clear();
  run("run", {.steps = 15, .settings = {{"optimizer", "relative", "true", "test", ""}}});
  EXPECT_THAT(notes_, HasSubstr("optimizer.relative was false, is now true"));
  notes_.clear();
  run("run", {.steps = 16, .settings = {{"optimizer", "moments", "\"f32\"", "test", ""}}});
  EXPECT_THAT(notes_, Not(HasSubstr("optimizer.moments")));
}

TEST_F(TrainerTest, ADivergedRunKeepsItsLastGoodCheckpoint) {
  run("run", {.steps = 14});
  const std::string good = read_text(path("run") + "/checkpoints/step-14/training.safetensors");
  try {
    run("run", {.steps = 200, .learning_rate = 1e20});
    FAIL() << "did not diverge";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("diverged at step"));
    EXPECT_THAT(error.what(), HasSubstr("the checkpoint of step 14 is kept"));
    EXPECT_THAT(error.hint(), HasSubstr("learning_rate"));
  }
  EXPECT_EQ(read_text(path("run") + "/checkpoints/step-14/training.safetensors"), good);
}

// The update is checked before it is saved, so a checkpoint on disk is always good.
TEST_F(TrainerTest, ADivergedStepIsNeverSaved) {
  for (const int64_t every : {1, 1000}) {
    SCOPED_TRACE(every);
    const std::string name = "run" + std::to_string(every);
    run(name, {.steps = 14});
    const std::string good = path(name) + "/checkpoints/step-14/training.safetensors";
    const std::string before = read_text(good);
    const std::vector<std::string> names = checkpoint_names(name);
    try {
      run(name, {.steps = 200,
                 .learning_rate = 1e6,
                 .train = {.checkpoint_every = 1, .keep_last = 1},
                 .validate = {.every = every}});
      FAIL() << "did not diverge";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("diverged at step 15"));
      EXPECT_THAT(error.what(), HasSubstr("the checkpoint of step 14 is kept"));
    }
    EXPECT_EQ(checkpoint_names(name), names);
    EXPECT_EQ(read_text(good), before);
  }
}

TEST_F(TrainerTest, StopsEarlyWhenNothingGetsBetter) {
  const TrainResult result =
      run("run", {.steps = 500, .learning_rate = 1e-12, .validate = {.every = 5, .patience = 2}});
  EXPECT_TRUE(result.finished);
  EXPECT_LT(result.steps, 100);
  EXPECT_THAT(notes_, HasSubstr("stopping early"));
  EXPECT_EQ(run("run", {.steps = 500, .validate = {.every = 5, .patience = 2}}).steps,
            result.steps);
}

TEST_F(TrainerTest, AveragesTheLastCheckpoints) {
  run("run", {.train = {.checkpoint_every = 10,
                        .keep_last = 1,
                        .average = Averaging::last,
                        .average_count = 2},
              .validate = {.every = 10}});
  EXPECT_EQ(checkpoint_names("run").size(), 2u + (checkpoint_names("run")[0] == "step-10"));
  const auto weights = [&](const std::string& folder) {
    const Network network = Network::load(path("run") + folder);
    const auto values = network.parameters().all_values();
    return std::vector<float>(values.begin(), values.end());
  };
  const auto a = weights("/checkpoints/step-20"), b = weights("/checkpoints/step-30"),
             mean = weights("");
  for (size_t i = 0; i < mean.size(); ++i) {
    ASSERT_FLOAT_EQ(mean[i], static_cast<float>((double{a[i]} + b[i]) / 2)) << i;
  }
}

// What a stop saves is a place to go on from, and no checkpoint more.
TEST_F(TrainerTest, StopsMakeNoDifferenceToAnAverage) {
  const TrainSection train{.checkpoint_every = 7,
                           .keep_last = 1,
                           .keep_best = 0,
                           .average = Averaging::last,
                           .average_count = 2};
  run("whole", {.train = train, .validate = {.every = 1000}});
  std::atomic<bool> stop = false;
  for (const int64_t at : {17, 25, 29}) {
    stop = false;
    run("stopped", {.train = train,
                    .validate = {.every = 1000},
                    .stop = &stop,
                    .progress = [&](const TrainProgress& p) {
                      if (p.step == at) stop = true;
                    }});
    EXPECT_THAT(checkpoint_names("stopped"), testing::Contains("step-" + std::to_string(at)));
  }
  EXPECT_TRUE(run("stopped", {.train = train, .validate = {.every = 1000}}).finished);
  EXPECT_EQ(checkpoint_names("stopped"), checkpoint_names("whole"));
  EXPECT_EQ(read_text(path("stopped") + "/model.safetensors"),
            read_text(path("whole") + "/model.safetensors"));
}

TEST_F(TrainerTest, AsksTheValidatorAboutEachCheckpoint) {
  std::vector<std::string> asked;
  double score = 0;
  const Validator validator = [&](const ValidationRequest& request) {
    asked.push_back(fs::path(request.model).filename());
    EXPECT_EQ(Network::load(request.model).config().width, 32);
    return ValidationScores{{{"bleu", asked.size() == 3 ? 50.0 : score += 1}}, {"a -> b"}};
  };
  const TrainResult result =
      run("run", {.validate = {.every = 10, .metric = "bleu"}, .validator = validator});
  EXPECT_EQ(asked, (std::vector<std::string>{"step-0.partial", "step-10.partial", "step-20.partial",
                                             "step-30.partial", "run"}));
  EXPECT_EQ(result.best_metric, 50.0);
  EXPECT_EQ(result.best_step, 20);
  EXPECT_THAT(read_text(path("run") + "/report.html"), HasSubstr("a -&gt; b"));
  // The final model is the best one.
  EXPECT_EQ(read_text(path("run") + "/model.safetensors"),
            read_text(path("run") + "/checkpoints/step-20/model.safetensors"));
}

// An interrupted validation is repeated, and leaves no trace.
TEST_F(TrainerTest, StopsWhileItValidatesAndGoesOn) {
  std::atomic<bool> stop = false;
  std::string stops_at;
  const Validator validator = [&](const ValidationRequest& request) {
    const std::string name = fs::path(request.model).filename();
    if (name == stops_at) stop = true;
    if (request.stop && *request.stop) throw Error(ErrorCode::cancelled, "stopped");
    return ValidationScores{{{"bleu", name == "step-20.partial" ? 50.0 : 7.0}}, {}};
  };
  const Setting setting{.ema_decay = 0.9,
                        .train = {.checkpoint_every = 7, .keep_last = 2},
                        .validate = {.every = 10, .metric = "bleu"},
                        .validator = validator,
                        .stop = &stop};
  const TrainResult whole = run("whole", setting);
  for (const auto& [at, step] : {std::pair{"step-20.partial", 20}, {"step-30.partial", 30}}) {
    stops_at = at, stop = false, notes_.clear();
    const TrainResult stopped = run("stopped", setting);
    EXPECT_FALSE(stopped.finished);
    EXPECT_EQ(stopped.steps, step);
    EXPECT_THAT(notes_, HasSubstr("stopped during the validation of step " + std::to_string(step)));
    EXPECT_EQ(notes_.find("step " + std::to_string(step) + ": validation"), std::string::npos);
    EXPECT_THAT(checkpoint_names("stopped"), testing::Contains("step-" + std::to_string(step)));
  }
  // And the last one, of what is left in OUT.
  stops_at = "stopped", stop = false;
  EXPECT_FALSE(run("stopped", setting).finished);
  stops_at.clear(), stop = false;
  const TrainResult result = run("stopped", setting);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.best_step, 20);
  EXPECT_EQ(result.validation, whole.validation);
  EXPECT_EQ(numbers("stopped"), numbers("whole"));
  EXPECT_EQ(checkpoint_names("stopped"), checkpoint_names("whole"));
  for (const char* file : {"/model.safetensors", "/checkpoints/step-20/model.safetensors",
                           "/checkpoints/step-30/training.safetensors"}) {
    EXPECT_EQ(read_text(path("stopped") + file), read_text(path("whole") + file)) << file;
  }
}

// One that came before the validation is no reason to begin it.
TEST_F(TrainerTest, AStopBeforeAValidationComesFirst) {
  std::atomic<bool> stop = false;
  int asked = 0;
  const Validator validator = [&](const ValidationRequest&) {
    return ValidationScores{{{"bleu", double(++asked)}}, {}};
  };
  EXPECT_EQ(run("run", {.validator = validator,
                        .stop = &stop,
                        .progress = [&](const TrainProgress& p) { stop = p.step == 10; }})
                .steps,
            10);
  EXPECT_EQ(asked, 1);  // the dry run
  stop = false;
  EXPECT_TRUE(run("run", {.validator = validator}).finished);
  EXPECT_EQ(asked, 1 + 1 + 4);
}

TEST_F(TrainerTest, AFolderThatCannotBeWrittenIsAClearError) {
  write("file", "not a folder");
  expect_error(ErrorCode::invalid_argument, "file", [&] { run("file/run", {}); });
}

TEST_F(TrainerTest, AFolderThatGoesAwayIsAClearError) {
  expect_error(ErrorCode::invalid_argument, "removed during training", [&] {
    run("run", {.progress = [&](const TrainProgress& p) {
          if (p.step == 3) fs::remove_all(path("run"));
        }});
  });
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(TrainerTest, ABadBatchFailsBeforeTheFirstStep) {
  FunctionSource source = toy_source(Family::encoder_decoder, ToyTask::copy, 4);
  source.largest = [] {
    TrainingBatch batch = toy_batch(Family::encoder_decoder, ToyTask::copy, 0, 2);
    batch.input.tokens[0] = 999;
    return batch;
  };
  int steps = 0;
  expect_error(ErrorCode::invalid_argument, "999", [&] {
    run("run", {.progress = [&](const TrainProgress&) { ++steps; }, .source = source});
  });
  EXPECT_EQ(steps, 0);
}

}  // namespace
}  // namespace heed
