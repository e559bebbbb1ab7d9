// From a recipe to a model folder, with real files.
#include "heed/train.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files/file_testing.h"
#include "base/philox.h"
#include "base/process_memory.h"
#include "heed/tokenizer.h"
#include "model/network.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TrainTest : public FolderTest {
 protected:
  // Sentences of a few words, and their words in the other order.
  void write_pairs(const std::string& name, int count, uint64_t seed) {
    static constexpr const char* kWords[] = {"red", "dog", "runs", "far", "a", "the", "on"};
    Random random({.seed = seed});
    std::string source, target;
    for (int i = 0; i < count; ++i) {
      std::string forward, backward;
      for (uint64_t w = 0, words = 2 + random.below(4); w < words; ++w) {
        const std::string word = kWords[random.below(std::size(kWords))];
        forward += (w ? " " : "") + word;
        backward = word + (w ? " " : "") + backward;
      }
      source += forward + "\n", target += backward + "\n";
    }
    write(name + ".a", source);
    write(name + ".b", target);
  }

  std::string recipe(const std::string& text) { return write("recipe.toml", text); }

  TrainResult run(const std::string& recipe_path, std::vector<std::string> set = {}) {
    TrainOptions options;
    options.recipe = recipe_path;
    options.set = std::move(set);
    options.set.push_back("data.folder=" + folder_.string());
    options.out = path("out");
    options.threads = 2;
    options.note = [this](std::string_view text) { notes_ += std::string(text) + "\n"; };
    return train(options);
  }

  const std::string small_ = R"(dropout = 0
width = 32
ffn = 64
heads = 4
)";
  const std::string pairs_ = "[model]\npreset = \"transformer-tiny\"\n" + small_ + R"(
encoder_layers = 1
decoder_layers = 1
[data]
train = ["train.a", "train.b"]
batch_tokens = 400
[tokenizer]
type = "byte"
)";
  const std::string classes_of_tsv_ = "[model]\npreset = \"bert-tiny\"\n" + small_ + R"(
[data]
train = "labelled.tsv"
[tokenizer]
type = "byte"
[objective]
kind = "classification"
[train]
steps = 1
)";
  std::string notes_;
};

TEST_F(TrainTest, TranslatesByARecipe) {
  write_pairs("train", 300, 1);
  write_pairs("valid", 20, 2);
  const std::string path_of_recipe = recipe(pairs_ + R"([optimizer]
learning_rate = 3e-3
[schedule]
warmup_steps = 10
[train]
epochs = 1
checkpoint_every = 10
[validate]
files = ["valid.a", "valid.b"]
every = 20
)");
  const TrainResult result = run(path_of_recipe);
  EXPECT_TRUE(result.finished);
  EXPECT_GT(result.steps, 10);
  EXPECT_LT(result.validation.at("loss"), 3.5);  // of 259 ids: 5.6 at first
  EXPECT_THAT(notes_, HasSubstr("300 read, 300 kept"));
  const Network network = Network::load(path("out"));
  EXPECT_EQ(network.config().width, 32);
  EXPECT_EQ(load_tokenizer(path("out"))->vocabulary_size(), network.config().vocabulary);
  // Again: all is done, and all is there.
  const std::string weights = read_text(path("out") + "/model.safetensors");
  EXPECT_EQ(run(path_of_recipe).steps, result.steps);
  EXPECT_EQ(read_text(path("out") + "/model.safetensors"), weights);
}

TEST_F(TrainTest, FineTunesAndNamesItsClasses) {
  std::string lines, held_out;
  for (int i = 0; i < 60; ++i) lines += i % 2 ? "good fine day\n" : "bad sad day\n";
  write("text.txt", lines);
  const std::string masked = recipe("[model]\npreset = \"bert-tiny\"\n" + small_ + R"(
[data]
train = "text.txt"
batch_tokens = 200
[tokenizer]
type = "byte"
[objective]
kind = "masked_lm"
mask_id = 2
[train]
steps = 3
)");
  run(masked);
  fs::rename(path("out"), path("body"));
  lines.clear();
  for (int i = 0; i < 60; ++i) lines += i % 2 ? "pos good fine day\n" : "neg bad sad day\n";
  write("labelled.txt", lines);
  const std::string classify = write("classify.toml", "[model]\nfrom = \"" + path("body") + R"("
[data]
train = "labelled.txt"
format = "labelled"
batch_tokens = 200
[objective]
kind = "classification"
[optimizer]
learning_rate = 3e-3
[train]
steps = 60
[validate]
files = "labelled.txt"
every = 60
metric = "accuracy"
)");
  const TrainResult result = run(classify);
  EXPECT_EQ(result.validation.at("accuracy"), 1);
  EXPECT_THAT(notes_, HasSubstr("newly initialized"));
  EXPECT_EQ(Network::load(path("out")).config().labels, 2);
  EXPECT_THAT(read_text(path("out") + "/config.json"), HasSubstr("\"1\": \"pos\""));
}

TEST_F(TrainTest, LeavesModelsAloneThatNoTrainingMade) {
  write_pairs("train", 20, 1);
  const std::string path_of_recipe = recipe(pairs_ + "[train]\nsteps = 1\n");
  fs::create_directory(path("out"));
  write("out/config.json", "{}");
  write("out/log.jsonl", "");  // handed on with its model
  expect_error(ErrorCode::invalid_argument, "must not hold a model that was not trained there",
               [&] { run(path_of_recipe); });
  EXPECT_EQ(read_text(path("out/config.json")), "{}");
  EXPECT_EQ(read_text(path("out/log.jsonl")), "");
  fs::remove(path("out/config.json"));
  EXPECT_TRUE(run(path_of_recipe).finished);
}

TEST_F(TrainTest, AFinishedTrainingStaysAsItIs) {
  write_pairs("train", 100, 1);
  write_pairs("valid", 10, 2);
  const std::string path_of_recipe =
      recipe(pairs_ + "[validate]\nfiles = [\"valid.a\", \"valid.b\"]\n");
  const TrainResult first = run(path_of_recipe, {"train.steps=3"});
  EXPECT_FALSE(first.was_finished);
  const auto files = [this] {
    std::string all;
    for (const char* name : {"config.json", "model.safetensors", "log.jsonl", "report.html"}) {
      all += read_text(path("out/") + name);
    }
    return all;
  };
  const std::string before = files();
  for (const char* steps : {"train.steps=3", "train.steps=2"}) {
    SCOPED_TRACE(steps);
    const TrainResult again = run(path_of_recipe, {steps, "optimizer.learning_rate=0.5"});
    EXPECT_TRUE(again.finished);
    EXPECT_TRUE(again.was_finished);
    EXPECT_EQ(again.steps, 3);
    EXPECT_EQ(again.parameters, first.parameters);
    EXPECT_EQ(again.validation, first.validation);
    EXPECT_EQ(files(), before);
  }
  const TrainResult more = run(path_of_recipe, {"train.steps=4"});
  EXPECT_FALSE(more.was_finished);
  EXPECT_EQ(more.steps, 4);
}

TEST_F(TrainTest, ValidatesWithAShareOfAnyFormat) {
  std::string lines = "label\ttext\n";
  for (int i = 0; i < 40; ++i) lines += i % 2 ? "pos\tgood fine day\n" : "neg\tbad sad day\n";
  write("labelled.tsv", lines);
  run(recipe(classes_of_tsv_), {"data.first_column=text", "data.label_column=label",
                                "data.batch_tokens=200", "validate.share=0.25"});
  EXPECT_THAT(notes_, HasSubstr("30 read, 30 kept"));
  EXPECT_THAT(notes_, HasSubstr("10 read, 10 kept"));
  EXPECT_THAT(read_text(path("out/config.json")), HasSubstr("\"1\": \"pos\""));
}

TEST_F(TrainTest, OneClassIsNothingToLearn) {
  write("labelled.tsv", "good fine day\tpos\nbad sad day\tpos\n");
  try {
    run(recipe(classes_of_tsv_));
    ADD_FAILURE() << "did not throw";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("every text has the label 'pos'"));
    EXPECT_THAT(error.hint(),
                HasSubstr("read as tsv, texts from column \"1\", labels from column \"2\""));
  }
}

// Under a limit, with batches that are too large for it.
class TrainMemoryTest : public TrainTest {
 protected:
  void SetUp() override {
    TrainTest::SetUp();
    write_pairs("train", 2000, 1);
    recipe_ = recipe("[model]\npreset = \"transformer-tiny\"\n" + small_ + R"(
[data]
train = ["train.a", "train.b"]
batch_tokens = 20000
[tokenizer]
type = "byte"
[train]
steps = 4
log_every = 1
checkpoint_every = 1
)");
  }

  TrainResult run_with(int64_t memory_bytes, std::vector<std::string> set = {},
                       const std::atomic<bool>* stop = nullptr) {
    TrainOptions options;
    options.recipe = recipe_;
    options.set = std::move(set);
    options.set.push_back("data.folder=" + folder_.string());
    options.out = path("out");
    options.threads = 1;
    options.stop = stop;
    options.progress = progress_;
    options.note = [this](std::string_view text) { notes_ += std::string(text) + "\n"; };
    options.memory_bytes = memory_bytes;
    return train(options);
  }

  // Of the newest checkpoint: what the steps were made of.
  std::map<std::string, int64_t> batches(const std::string& out = "out") const {
    std::map<std::string, int64_t> values;
    const auto json = nlohmann::json::parse(read_text(path(out) + "/memory.json")).at("chosen");
    for (const auto& [key, value] : json.items()) values[key] = value.get<int64_t>();
    return values;
  }

  // A training in a process of its own, whose validator takes all it is given.
  void expect_to_stay_within(const std::string& out, int64_t batch_tokens, int64_t steps = 1);

  // What this process has by now, and so much more.
  static int64_t more_than_now(int64_t bytes) { return current_rss_bytes() + bytes; }

  std::string recipe_;
  std::function<void(const TrainProgress&)> progress_;
};

TEST_F(TrainMemoryTest, TakesSmallerBatchesAndMoreOfThem) {
  EXPECT_THROW(run_with(1), Error);
  EXPECT_EQ(run_with(more_than_now(80'000'000)).steps, 4);
  EXPECT_THAT(notes_, HasSubstr("plan for "));
  const auto chosen = batches();
  EXPECT_GT(chosen.at("accumulate"), 1);
  // The step is as large as it was, but for rounding.
  const int64_t tokens = chosen.at("accumulate") * chosen.at("batch_tokens");
  EXPECT_GE(tokens, 20000);
  EXPECT_LT(tokens, 20000 + chosen.at("accumulate"));
}

TEST_F(TrainMemoryTest, GoesOnWithTheBatchesItBeganWith) {
  const int64_t limit = more_than_now(80'000'000);
  std::atomic<bool> stop = false;
  progress_ = [&](const TrainProgress& p) { stop = p.step == 2; };
  EXPECT_FALSE(run_with(limit, {}, &stop).finished);
  const auto chosen = batches();
  // The process has more memory by now: a new choice would have smaller batches.
  const std::vector<char> ballast(60'000'000, 1);
  progress_ = {};
  EXPECT_TRUE(run_with(limit).finished);
  EXPECT_EQ(batches(), chosen);
  EXPECT_EQ(ballast.back(), 1);
  EXPECT_EQ(notes_.find("batch_tokens was"), std::string::npos) << notes_;
  // A smaller limit is not kept by going on.
  expect_error(ErrorCode::out_of_memory, "began with --memory",
               [&] { run_with(limit - 60'000'000, {"train.steps=5"}); });
}

TEST_F(TrainMemoryTest, ChoosesAnewForAnotherModelBeforeItBegins) {
  const int64_t limit = more_than_now(80'000'000);
  run_with(limit);
  const auto chosen = batches();
  fs::remove_all(path("out") + "/checkpoints");
  run_with(limit, {"model.ffn=1024"});
  EXPECT_GT(batches().at("accumulate"), chosen.at("accumulate"));
}

TEST_F(TrainMemoryTest, GoesOnWithNothingThatTakesMore) {
  const int64_t limit = more_than_now(80'000'000);
  run_with(limit, {"model.dropout=0.1", "train.steps=2"});
  expect_error(ErrorCode::out_of_memory, "with the changed settings", [&] {
    run_with(limit, {"model.dropout=0.1", "train.steps=3", "objective.r_drop=1"});
  });
  // With so much more it does fit.
  EXPECT_EQ(
      run_with(limit + 400'000'000, {"model.dropout=0.1", "train.steps=3", "objective.r_drop=1"})
          .steps,
      3);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCountsMemory = false;  // sanitizers keep what was freed
#else
constexpr bool kCountsMemory = true;
#endif

// In a child process, so that the peak is its own. The validator uses all memory it is given, and a
// model beside it, as one that decodes does.
void TrainMemoryTest::expect_to_stay_within(const std::string& out, int64_t batch_tokens,
                                            int64_t steps) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int64_t limit = more_than_now(300'000'000);
    TrainOptions options;
    options.recipe = recipe_;
    options.set = {"data.folder=" + folder_.string(),
                   "data.batch_tokens=" + std::to_string(batch_tokens),
                   "model.width=256",
                   "model.ffn=8192",
                   "model.encoder_layers=1",
                   "model.decoder_layers=1",
                   "train.steps=" + std::to_string(steps),
                   "train.average=last",
                   "validate.files=[\"valid.a\", \"valid.b\"]"};
    options.out = path(out);
    options.threads = 1;
    options.memory_bytes = limit;
    options.validator = [](const ValidationRequest& request) {
      const Network file = Network::load(request.model), packed = Network::load(request.model);
      const std::vector<char> keys_and_values(request.kv_memory_bytes, 1);
      return ValidationScores{{{"bleu", double(keys_and_values.back())}}, {}};
    };
    try {
      const TrainResult result = train(options);
      if (result.peak_rss_bytes <= limit || !kCountsMemory) _exit(0);
      std::fprintf(stderr, "peak %ld of %ld\n", long(result.peak_rss_bytes), long(limit));
      _exit(1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(TrainMemoryTest, StaysWithinTheLimitWhileValidationDecodes) {
  write_pairs("valid", 50, 2);
  expect_to_stay_within("one", 1600);
  EXPECT_EQ(batches("one").at("accumulate"), 1);  // and so updated in backward
  expect_to_stay_within("one", 1600, 2);          // from its checkpoint on, and with a mean of two
  expect_to_stay_within("several", 3200);
  EXPECT_GT(batches("several").at("accumulate"), 1);
}

// Parts of a step need its gradients, and running layers again costs time: each is a way out only
// where the one before does not fit.
TEST_F(TrainMemoryTest, MoreMemoryNeverMakesAStepWorse) {
  if (!kCountsMemory) GTEST_SKIP() << "sanitizers keep what was freed";
  const std::vector<std::string> large{"model.width=256", "model.ffn=8192",
                                       "model.encoder_layers=1", "model.decoder_layers=1",
                                       "data.batch_tokens=1600"};
  std::atomic<bool> stop = false;
  TrainOptions options;
  options.recipe = recipe_;
  options.set = large;
  options.set.push_back("data.folder=" + folder_.string());
  options.out = path("out");
  options.threads = 1;
  options.stop = &stop;
  options.note = [&](std::string_view text) {
    notes_ += std::string(text) + "\n";
    if (text.starts_with("plan for")) stop = true;  // which is all that is asked here
  };
  const int64_t now = more_than_now(0);
  int64_t least_parts = std::numeric_limits<int64_t>::max();
  bool runs_again = true, refused = false;
  std::set<std::pair<bool, bool>> seen;
  for (int64_t limit = 170'000'000; limit <= 330'000'000; limit += 10'000'000) {
    SCOPED_TRACE(limit);
    notes_.clear();
    stop = false;
    options.memory_bytes = now + limit;
    try {
      train(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
      refused |= error.hint().find("data.batch_tokens = ") != std::string::npos;
      continue;
    }
    const bool again = notes_.find("layers recomputed") != std::string::npos;
    const int64_t parts = batches().at("accumulate");
    EXPECT_LE(again, runs_again);
    if (again == runs_again) {
      EXPECT_LE(parts, least_parts);
    }
    runs_again = again, least_parts = parts;
    seen.emplace(again, parts == 1);
  }
  EXPECT_TRUE(refused);                       // with what would fit
  EXPECT_TRUE(seen.contains({true, true}));   // a whole step, its layers run again
  EXPECT_TRUE(seen.contains({false, true}));  // a whole step
}

TEST_F(TrainMemoryTest, BatchesThatSentencesLimitStayAsTheyAre) {
  EXPECT_EQ(run_with(more_than_now(80'000'000), {"data.batch_sentences=12"}).steps, 4);
  EXPECT_EQ(batches().at("accumulate"), 1);
  EXPECT_EQ(batches().at("batch_tokens"), 20000);
  EXPECT_EQ(batches().at("batch_sentences"), 12);
}

TEST_F(TrainMemoryTest, ValidatesWithAsManyBatchesMore) {
  write_pairs("valid", 50, 2);
  for (const auto& sizes : {std::vector<std::string>{"data.batch_tokens=20000"},
                            {"data.batch_tokens=500000", "data.batch_sentences=700"}}) {
    SCOPED_TRACE(sizes.back());
    fs::remove_all(path("out"));
    std::vector<std::string> set = sizes;
    set.insert(set.end(), {"validate.files=[\"valid.a\", \"valid.b\"]", "validate.batches=2",
                           "train.accumulate=2", "train.steps=1"});
    run_with(more_than_now(80'000'000), set);
    const int64_t parts = batches().at("accumulate");
    EXPECT_GT(parts, 2);
    const auto state =
        nlohmann::json::parse(read_text(path("out") + "/checkpoints/step-1/state.json"));
    const auto settings = nlohmann::json::parse(state.at("settings").get<std::string>());
    EXPECT_EQ(settings.at("validate.batches"), std::to_string(parts));
  }
}

TEST_F(TrainMemoryTest, AStepHasSoManyBatchesAtMost) {
  expect_error(ErrorCode::invalid_argument, "train.accumulate must be at most 4096, got 5000",
               [&] { run_with(0, {"train.accumulate=5000"}); });
  expect_error(ErrorCode::out_of_memory, "at most 4096",
               [&] { run_with(more_than_now(80'000'000), {"train.accumulate=4000"}); });
}

TEST_F(TrainMemoryTest, StopsBeforeTheFirstStep) {
  const std::atomic<bool> stop = true;
  const TrainResult result = run_with(0, {}, &stop);
  EXPECT_FALSE(result.finished);
  EXPECT_EQ(result.steps, 0);
  EXPECT_EQ(result.folder, path("out"));
  EXPECT_EQ(notes_.find("model: "), std::string::npos) << notes_;
}

TEST_F(TrainMemoryTest, ReportsTheModelThatIsTrained) {
  run_with(0, {"train.steps=1"});
  const std::string report = read_text(path("out") + "/report.html");
  const std::string vocabulary = std::to_string(Network::load(path("out")).config().vocabulary);
  EXPECT_THAT(report, HasSubstr("<code>model.vocabulary</code><td><code>" + vocabulary + "<"));
}

TEST_F(TrainTest, GoesOnWithTheSeedItBeganWith) {
  write_pairs("train", 300, 1);
  const std::string path_of_recipe = recipe(pairs_ + R"([train]
checkpoint_every = 3
)");
  run(path_of_recipe, {"train.steps=12"});
  const std::string weights = read_text(path("out") + "/model.safetensors");
  fs::remove_all(path("out"));
  run(path_of_recipe, {"train.steps=6"});
  run(path_of_recipe, {"train.steps=12", "train.seed=7"});
  EXPECT_THAT(notes_, HasSubstr("resuming with seed 1,"));
  EXPECT_EQ(read_text(path("out") + "/model.safetensors"), weights);
}

// Checkpoints once kept the vocabulary that the preset has, and not the tokenizer's.
TEST_F(TrainTest, TellsOnlyOfSettingsThatSomebodyChanged) {
  write_pairs("train", 100, 1);
  const std::string path_of_recipe =
      recipe("[model]\npreset = \"transformer-tiny\"\n" + small_ + R"(
[data]
train = ["train.a", "train.b"]
batch_tokens = 400
[tokenizer]
type = "byte"
)");
  run(path_of_recipe, {"train.steps=1"});
  const std::string file = path("out") + "/checkpoints/step-1/state.json";
  auto state = nlohmann::json::parse(read_text(file));
  auto settings = nlohmann::json::parse(state.at("settings").get<std::string>());
  settings.at("model.vocabulary") = "32000";
  state.at("settings") = settings.dump();
  std::ofstream(file) << state.dump();
  run(path_of_recipe, {"train.steps=2"});
  EXPECT_THAT(notes_, HasSubstr("train.steps was 1, is now 2"));
  EXPECT_EQ(notes_.find("model.vocabulary was"), std::string::npos) << notes_;
}

TEST_F(TrainTest, ATeacherHasTheStudentsPieces) {
  write_pairs("train", 100, 1);
  const std::string text = "[model]\npreset = \"transformer-tiny\"\n" + small_ + R"(
[data]
train = ["train.a", "train.b"]
batch_tokens = 400
[tokenizer]
type = "char"
[train]
steps = 1
)";
  run(recipe(text));
  fs::rename(path("out"), path("teacher"));
  // As many pieces, but others: the words' letters by another name.
  for (const char* side : {"train.a", "train.b"}) {
    std::string letters = read_text(path(side));
    for (char& c : letters)
      c = std::isalpha(static_cast<unsigned char>(c)) ? static_cast<char>(c - 32) : c;
    write(side, letters);
  }
  expect_error(ErrorCode::invalid_argument, "the teacher must have the same vocabulary",
               [&] { run(recipe(text), {"objective.teacher=" + path("teacher")}); });
  fs::remove_all(path("out"));
  EXPECT_EQ(run(recipe(text),
                {"objective.teacher=" + path("teacher"), "tokenizer.from=" + path("teacher")})
                .steps,
            1);
  // One that cannot be read is not one that is missing.
  fs::create_directories(path("student"));
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"}) {
    fs::copy(path("teacher") + "/" + file, path("student"));
  }
  const std::vector<std::string> set{"objective.teacher=" + path("teacher"),
                                     "tokenizer.from=" + path("student"), "train.steps=2"};
  write("teacher/tokenizer.json", "{\"model\": 1}");
  expect_error(ErrorCode::corrupt_file, "tokenizer.json", [&] { run(recipe(text), set); });
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"}) {
    fs::remove(path("teacher") + "/" + file);
  }
  EXPECT_EQ(run(recipe(text), set).steps, 2);
}

TEST_F(TrainTest, ErrorsNameWhatIsWrong) {
  expect_error(ErrorCode::not_found, "no-such.toml", [&] { run("no-such.toml"); });
  const std::string missing = recipe(R"([model]
preset = "gpt2"
[data]
train = "no-such.txt"
[tokenizer]
type = "byte"
[objective]
kind = "causal_lm"
[train]
steps = 1
)");
  expect_error(ErrorCode::not_found, "no-such.txt", [&] { run(missing); });
  expect_error(ErrorCode::invalid_argument, "must be the name of a preset, got \"gpt3\"",
               [&] { run(missing, {"model.preset=gpt3"}); });
}

TEST(TrainSettings, ShowEveryRecipeOfTheProject) {
  int recipes = 0;
  for (const auto& entry : fs::directory_iterator("recipes")) {
    if (entry.path().extension() != ".toml") continue;
    ++recipes;
    std::vector<std::string> set;
    // These go on from what another one makes.
    const std::string name = entry.path().stem();
    if (name == "sst2-bert-mini" || name.starts_with("finetune-") || name.ends_with("-minilm")) {
      set = {"model.from=" + kGoldenFolder + "models/bert-mlm"};
    } else if (name == "everyday-en-de") {
      set = {"model.from=" + kGoldenFolder + "models/marian"};
    } else if (name == "sst2-text") {
      set = {"model.from=" + kGoldenFolder + "models/t5"};
    }
    const auto settings = train_settings({.recipe = entry.path(), .set = set});
    EXPECT_GT(settings.size(), 100u) << entry.path();
  }
  EXPECT_GE(recipes, 2);
}

// Before the tokenizer is trained and the data is read, which here are missing.
TEST_F(TrainTest, ChecksTheModelBeforeTheData) {
  const std::string path_of_recipe = recipe(pairs_ + "[train]\nsteps = 1\n");
  expect_error(ErrorCode::invalid_argument, "must be the name of a preset, got \"bert-tny\"",
               [&] { run(path_of_recipe, {"model.preset=bert-tny"}); });
  expect_error(ErrorCode::invalid_argument, "[model] width must be a multiple of heads",
               [&] { run(path_of_recipe, {"model.heads=3"}); });
  expect_error(ErrorCode::invalid_argument, "is for decoder_only models",
               [&] { run(path_of_recipe, {"objective.kind=causal_lm"}); });
  expect_error(ErrorCode::out_of_memory, "GB with gradients and optimizer state", [&] {
    run(path_of_recipe, {"model.width=200000", "model.ffn=200000"});
  });
  expect_error(ErrorCode::invalid_argument, "recipe.toml: [model] width must be a multiple",
               [&] { run(recipe(classes_of_tsv_), {"model.heads=3"}); });
  expect_error(ErrorCode::invalid_argument, "recipe.toml: [model] vocabulary must be below",
               [&] { run(recipe(classes_of_tsv_), {"model.vocabulary=1000000000000"}); });
  // The files of both kinds, too.
  write_pairs("train", 60, 1);
  expect_error(ErrorCode::invalid_argument, "must have two files, source and target, got only",
               [&] { run(recipe(pairs_ + "[train]\nsteps = 1\n"), {"data.train=train.a"}); });
  expect_error(ErrorCode::not_found, "none.a", [&] {
    run(recipe(pairs_ + "[train]\nsteps = 1\n"), {R"(validate.files=["none.a", "none.b"])"});
  });
  EXPECT_FALSE(fs::exists(path("out") + "/tokenizer"));
}

TEST_F(TrainTest, ATokenizerMustBeThatOfThePretrainedModel) {
  write_pairs("train", 60, 1);
  const std::string path_of_recipe = recipe(pairs_ + "[train]\nsteps = 1\n");
  run(path_of_recipe);
  fs::rename(path("out"), path("from"));
  const std::vector<std::string> from{"model.preset=", "model.from=" + path("from")};
  const auto with = [&](const std::string& key) {
    std::vector<std::string> sets = from;
    sets.push_back(key);
    return sets;
  };
  expect_error(ErrorCode::invalid_argument, "must not train a new tokenizer with model.from",
               [&] { run(path_of_recipe, with("tokenizer.type=char")); });
  TokenizerTraining other{.type = "char", .vocabulary = 100, .files = {path("train.a")}};
  fs::create_directories(path("other"));
  train_tokenizer(other)->save(path("other"));
  expect_error(ErrorCode::invalid_argument, "model.from must have the same vocabulary: its piece",
               [&] { run(path_of_recipe, with("tokenizer.from=" + path("other"))); });
  notes_.clear();
  std::vector<std::string> sets = with("tokenizer.type=");
  sets.emplace_back("tokenizer.vocabulary=500");
  EXPECT_EQ(run(path_of_recipe, sets).steps, 1);
  EXPECT_THAT(notes_, HasSubstr("note: not used, because the tokenizer is that of " + path("from") +
                                ": tokenizer.vocabulary"));
}

TEST_F(TrainTest, AFinishedRunNamesSettingsThatChanged) {
  write_pairs("train", 60, 1);
  const std::string path_of_recipe = recipe(pairs_ + "[train]\nepochs = 1\n");
  EXPECT_TRUE(run(path_of_recipe).changed_settings.empty());
  const TrainResult same = run(path_of_recipe);
  EXPECT_TRUE(same.was_finished);
  EXPECT_THAT(same.changed_settings, testing::IsEmpty());
  const TrainResult changed = run(
      path_of_recipe, {"optimizer.learning_rate=0.5", "model.dropout=0.25", "data.train=train.a"});
  EXPECT_TRUE(changed.was_finished);
  EXPECT_THAT(changed.changed_settings,
              testing::ElementsAre("model.dropout was 0.0, is now 0.25",
                                   "data.train was [\"train.a\",\"train.b\"], is now [\"train.a\"]",
                                   HasSubstr("optimizer.learning_rate was 0.001, is now 0.5")));
}

TEST_F(TrainTest, NamesBrokenRowsAndNotTheVocabulary) {
  write("rows.csv", "text,label\na b,x\nc d,y\ne, f,x\n\"g,x\n");
  const std::string text = "[model]\npreset = \"bert-tiny\"\n" + small_ + R"([data]
train = "rows.csv"
first_column = "text"
label_column = "label"
[tokenizer]
type = "wordpiece"
vocabulary = 500
[objective]
kind = "classification"
[train]
steps = 1
)";
  expect_error(ErrorCode::invalid_argument,
               "2 of 4 records were skipped: 2 malformed (first: " + path("rows.csv") +
                   ":4: 3 columns, the header has 2",
               [&] { run(recipe(text)); });
  EXPECT_FALSE(fs::exists(path("out") + "/tokenizer.txt"));
  write("rows.csv", "");
  expect_error(ErrorCode::invalid_argument, "rows.csv: must have examples, the file has none",
               [&] { run(recipe(text)); });
  write("rows.csv", "text,label\na b,x\nc d,y\n");
  expect_error(ErrorCode::invalid_argument, "the label must be a number for regression, got 'x'",
               [&] {
                 run(recipe(text), {"objective.kind=regression", "tokenizer.type=byte"});
               });
}

}  // namespace
}  // namespace heed
