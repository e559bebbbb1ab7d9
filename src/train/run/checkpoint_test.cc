#include "train/run/checkpoint.h"

#include <sys/resource.h>

#include <bit>
#include <csignal>
#include <cstring>

#include "base/files/file_testing.h"
#include "train/run/task_testing.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public FolderTest {
 protected:
  CheckpointTest() : network_(toy_config(Family::decoder_only), 3) { network_.add_gradients(); }

  void save(Checkpoints& checkpoints, Optimizer& optimizer, int64_t step,
            std::optional<double> metric = {}, bool scheduled = true) {
    checkpoints.begin(network_, step, {});
    checkpoints.commit(network_, optimizer,
                       {.step = step, .metric = metric, .scheduled = scheduled});
  }
  std::vector<int64_t> steps(const Checkpoints& checkpoints) const {
    std::vector<int64_t> list;
    for (const Checkpoint& c : checkpoints.list()) list.push_back(c.state.step);
    return list;
  }

  Network network_;
};

TEST(TrainingState, GivesBackEveryBit) {
  const TrainingState state{.step = 12345678901,
                            .seed = 0xffffffffffffffffu,
                            .cursor = {3, 1, 4},
                            .tokens = 99,
                            .seconds = 0.1,
                            .first_loss = 1.0 / 3,
                            .interval_loss = 1e-310,
                            .interval_steps = 7,
                            .metric = std::nextafter(0.3, 1),
                            .best_metric = {},
                            .best_step = 5,
                            .without_better = 2,
                            .settings = "{\"a\": \"\\u00e4\"}",
                            .scheduled = false};
  EXPECT_EQ(state_from_json(to_json(state), "state.json"), state);
  // Older checkpoints do not say whether they were scheduled.
  std::string older = to_json(TrainingState{.step = 3});
  const std::string line = ",\n  \"scheduled\": true";
  ASSERT_NE(older.find(line), std::string::npos) << older;
  older.erase(older.find(line), line.size());
  EXPECT_EQ(state_from_json(older, "state.json"), TrainingState{.step = 3});
}

TEST(TrainingState, RefusesWhatItDoesNotKnow) {
  const auto refuse = [](const std::string& json, const std::string& why) {
    expect_error(ErrorCode::corrupt_file, why, [&] { state_from_json(json, "state.json"); });
  };
  refuse("", "not a JSON object");
  refuse("{}", "version");
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  refuse("{\"version\": " + deep + "}", "not a JSON object");
  refuse("{\"version\": 2}", "version");
  refuse("{\"version\": 1}", "step is missing");
}

// Fills moments and average with numbers that bf16 has too.
void fill(Optimizer& optimizer) {
  Random random({.seed = 1});
  const size_t number = optimizer.moment_type() == MomentType::bf16 ? 2 : 4;
  for (const std::span<std::byte> moment : {optimizer.moment1(), optimizer.moment2()}) {
    for (size_t at = 0; at < moment.size(); at += number) {
      const auto upper = static_cast<uint16_t>(std::bit_cast<uint32_t>(random.normal()) >> 16);
      std::memcpy(&moment[at + number - sizeof upper], &upper, sizeof upper);
    }
  }
  for (float& x : optimizer.average()) x = random.normal();
}

TEST_F(CheckpointTest, ComesBackAsItWas) {
  for (const MomentType type : {MomentType::f32, MomentType::bf16}) {
    SCOPED_TRACE(name_of(type));
    Checkpoints checkpoints(path(std::string(name_of(type))));
    EXPECT_TRUE(checkpoints.list().empty());
    const OptimizerOptions options{.ema_decay = 0.5, .moments = type};
    Optimizer optimizer(network_.parameters(), options);
    fill(optimizer);
    save(checkpoints, optimizer, 40);
    EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{40}));
    const Checkpoint saved = checkpoints.list().back();
    EXPECT_EQ(Network::load(saved.folder).config().width, 32);

    Network other(toy_config(Family::decoder_only), 4);
    other.add_gradients();
    Optimizer loaded(other.parameters(), options);
    Checkpoints::load(saved, other, loaded);
    EXPECT_EQ(loaded.steps(), 40);
    const size_t number = type == MomentType::bf16 ? 2 : 4;
    for (const ParameterSpec& spec : other.parameters().specs()) {
      const auto a = other.parameters().values(spec.name);
      EXPECT_TRUE(std::ranges::equal(a, network_.parameters().values(spec.name))) << spec.name;
      const auto at = static_cast<size_t>(a.data() - other.parameters().all_values().data());
      EXPECT_TRUE(std::ranges::equal(loaded.average().subspan(at, a.size()),
                                     optimizer.average().subspan(at, a.size())));
      const auto part = [&](std::span<std::byte> moment) {
        return moment.subspan(at * number, a.size() * number);
      };
      EXPECT_TRUE(std::ranges::equal(part(loaded.moment1()), part(optimizer.moment1())));
      EXPECT_TRUE(std::ranges::equal(part(loaded.moment2()), part(optimizer.moment2())));
    }
  }
}

// optimizer.moments may change between two runs of a training.
TEST_F(CheckpointTest, MomentsOfTheOtherTypeAreTurnedIntoThisOne) {
  for (const MomentType type : {MomentType::f32, MomentType::bf16}) {
    const MomentType other = type == MomentType::f32 ? MomentType::bf16 : MomentType::f32;
    SCOPED_TRACE(name_of(type));
    Checkpoints first(path("first-" + std::string(name_of(type))));
    Checkpoints second(path("second-" + std::string(name_of(type))));
    Optimizer optimizer(network_.parameters(), {.moments = type});
    fill(optimizer);
    save(first, optimizer, 1);
    Optimizer turned(network_.parameters(), {.moments = other});
    Checkpoints::load(first.list().back(), network_, turned);
    save(second, turned, 1);
    Optimizer back(network_.parameters(), {.moments = type});
    Checkpoints::load(second.list().back(), network_, back);
    save(second, back, 2);
    EXPECT_EQ(read_text(second.list().back().folder + "/training.safetensors"),
              read_text(first.list().back().folder + "/training.safetensors"));
  }
}

TEST_F(CheckpointTest, AnotherModelsIsRefused) {
  Checkpoints checkpoints(path("checkpoints"));
  Optimizer optimizer(network_.parameters(), {});
  save(checkpoints, optimizer, 1);
  ModelConfig config = toy_config(Family::decoder_only);
  config.ffn = 48;
  Network other(config, 1);
  other.add_gradients();
  Optimizer theirs(other.parameters(), {});
  expect_error(ErrorCode::invalid_argument, "this recipe's model has",
               [&] { Checkpoints::load(checkpoints.list().back(), other, theirs); });
}

TEST_F(CheckpointTest, ADamagedOneIsToldWithWhatToRemove) {
  Checkpoints checkpoints(path("checkpoints"));
  Optimizer optimizer(network_.parameters(), {});
  save(checkpoints, optimizer, 9);
  save(checkpoints, optimizer, 10);
  const auto expect_hint = [&](const std::string& hint) {
    try {
      Checkpoints::load(checkpoints.list().back(), network_, optimizer);
      ADD_FAILURE() << "did not throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt_file);
      EXPECT_THAT(error.hint(), testing::HasSubstr(hint));
    }
  };
  fs::resize_file(path("checkpoints/step-10/training.safetensors"), 100);
  expect_hint("remove " + path("checkpoints/step-10") + " to resume from step-9");
  write("checkpoints/step-10/state.json", "{");
  expect_hint("remove " + path("checkpoints/step-10") + " to resume from step-9");
  fs::remove(path("checkpoints/step-10/state.json"));
  expect_hint("remove " + path("checkpoints/step-10") + " to resume from step-9");
  fs::remove_all(path("checkpoints/step-10"));
  fs::resize_file(path("checkpoints/step-9/training.safetensors"), 100);
  expect_hint("there is no earlier checkpoint");
}

TEST_F(CheckpointTest, KeepsTheLastAndTheBest) {
  Checkpoints checkpoints(path("checkpoints"));
  Optimizer optimizer(network_.parameters(), {});
  const std::vector<double> losses{5, 2, 4, 3, 6};
  for (size_t i = 0; i < losses.size(); ++i) {
    save(checkpoints, optimizer, static_cast<int64_t>(10 * (i + 1)), losses[i]);
  }
  save(checkpoints, optimizer, 60);  // not validated: never among the best
  checkpoints.prune({.last = 2, .best = 2});
  EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{20, 40, 50, 60}));
  checkpoints.prune({.last = 1, .best = 1, .lower_is_better = false});
  EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{50, 60}));
}

TEST_F(CheckpointTest, OneThatAStopMadeTakesNoPlace) {
  Checkpoints checkpoints(path("checkpoints"));
  Optimizer optimizer(network_.parameters(), {});
  save(checkpoints, optimizer, 10);
  save(checkpoints, optimizer, 20);
  save(checkpoints, optimizer, 25, {}, /*scheduled=*/false);
  checkpoints.prune({.last = 2});
  EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{10, 20, 25}));
  save(checkpoints, optimizer, 30);
  checkpoints.prune({.last = 2});
  EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{20, 30}));
}

TEST_F(CheckpointTest, AFolderThatWasRemovedIsNotMadeAgain) {
  fs::create_directory(path("run"));
  Checkpoints checkpoints(path("run/checkpoints"));
  Optimizer optimizer(network_.parameters(), {});
  save(checkpoints, optimizer, 10);
  fs::remove_all(path("run"));
  expect_error(ErrorCode::invalid_argument, "removed during training",
               [&] { save(checkpoints, optimizer, 20); });
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(CheckpointTest, AHalfWrittenOneIsNone) {
  Checkpoints checkpoints(path("checkpoints"));
  Optimizer optimizer(network_.parameters(), {});
  save(checkpoints, optimizer, 5);
  checkpoints.begin(network_, 6, {});  // and no commit(): killed
  fs::create_directories(path("checkpoints/notes"));
  EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{5}));
  save(checkpoints, optimizer, 6);
  EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{5, 6}));
}

TEST_F(CheckpointTest, WhatAKilledProcessLeftIsRemovedByTheNext) {
  Checkpoints checkpoints(path("checkpoints"));
  Optimizer optimizer(network_.parameters(), {});
  save(checkpoints, optimizer, 5);
  checkpoints.begin(network_, 6, {});
  fs::create_directories(path("checkpoints/step-4.old"));
  fs::create_directories(path("checkpoints/mine.partial"));  // not a checkpoint
  checkpoints.abandon_all();
  EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{5}));
  EXPECT_FALSE(fs::exists(path("checkpoints/step-6.partial")));
  EXPECT_FALSE(fs::exists(path("checkpoints/step-4.old")));
  EXPECT_TRUE(fs::exists(path("checkpoints/mine.partial")));
}

TEST_F(CheckpointTest, TheSameStepAgainReplacesIt) {
  Checkpoints checkpoints(path("checkpoints"));
  Optimizer optimizer(network_.parameters(), {});
  save(checkpoints, optimizer, 5);
  write("checkpoints/step-5/note", "of the first");
  save(checkpoints, optimizer, 5);
  EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{5}));
  EXPECT_FALSE(fs::exists(path("checkpoints/step-5/note")));
  EXPECT_FALSE(fs::exists(path("checkpoints/step-5.partial")));
}

// A limit on the size of files stands for a full disk.
TEST_F(CheckpointTest, AFullDiskLeavesTheOneBefore) {
  Checkpoints checkpoints(path("checkpoints"));
  Optimizer optimizer(network_.parameters(), {});
  save(checkpoints, optimizer, 5);
  const std::string before = read_text(path("checkpoints/step-5/training.safetensors"));
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  rlimit small = limit;
  small.rlim_cur = 4096;
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  checkpoints.begin(network_, 6, {});
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(checkpoints.commit(network_, optimizer, {.step = 6}), Error);
  EXPECT_FALSE(fs::exists(path("checkpoints/step-6.partial")));
  EXPECT_THROW(save(checkpoints, optimizer, 6), Error);
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{5}));
  EXPECT_EQ(read_text(path("checkpoints/step-5/training.safetensors")), before);
  save(checkpoints, optimizer, 6);
  EXPECT_EQ(steps(checkpoints), (std::vector<int64_t>{5, 6}));
}

}  // namespace
}  // namespace heed
