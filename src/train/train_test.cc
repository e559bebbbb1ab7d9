// From a recipe to a model folder, with real files.
#include "heed/train.h"

#include "base/file_testing.h"
#include "base/philox.h"
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
  std::string notes_;
};

TEST_F(TrainTest, TranslatesByARecipe) {
  write_pairs("train", 300, 1);
  write_pairs("valid", 20, 2);
  const std::string path_of_recipe =
      recipe("[model]\npreset = \"transformer-tiny\"\n" + small_ + R"(
encoder_layers = 1
decoder_layers = 1
[data]
train = ["train.a", "train.b"]
batch_tokens = 400
[tokenizer]
type = "byte"
[optimizer]
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
  EXPECT_THAT(notes_, HasSubstr("begin anew"));
  EXPECT_EQ(Network::load(path("out")).config().labels, 2);
  EXPECT_THAT(read_text(path("out") + "/config.json"), HasSubstr("\"1\": \"pos\""));
}

TEST_F(TrainTest, KeepsWithinTheMemoryItIsGiven) {
  write_pairs("train", 2000, 1);
  const std::string path_of_recipe =
      recipe("[model]\npreset = \"transformer-tiny\"\n" + small_ + R"(
[data]
train = ["train.a", "train.b"]
batch_tokens = 20000
[tokenizer]
type = "byte"
[train]
steps = 2
)");
  TrainOptions options;
  options.recipe = path_of_recipe;
  options.set = {"data.folder=" + folder_.string()};
  options.out = path("out");
  options.note = [this](std::string_view text) { notes_ += std::string(text) + "\n"; };
  options.memory_bytes = 1;
  EXPECT_THROW(train(options), Error);
  options.memory_bytes = 400'000'000;
  const TrainResult result = train(options);
  EXPECT_EQ(result.steps, 2);
  EXPECT_THAT(notes_, HasSubstr("plan for 400 MB"));
  // Other tests of this process may have had more before; alone, the limit holds.
  if (result.peak_rss_bytes > options.memory_bytes) GTEST_SKIP() << "not alone in this process";
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
  expect_error(ErrorCode::not_found, "no preset 'gpt3'",
               [&] { run(missing, {"model.preset=gpt3"}); });
}

TEST(TrainSettings, ShowEveryRecipeOfTheProject) {
  int recipes = 0;
  for (const auto& entry : fs::directory_iterator("recipes")) {
    if (entry.path().extension() != ".toml") continue;
    ++recipes;
    std::vector<std::string> set;
    // These go on from what another one makes.
    if (entry.path().stem() == "sst2-bert-mini") {
      set = {"model.from=" + kGoldenFolder + "models/bert-mlm"};
    } else if (entry.path().stem() == "sst2-text") {
      set = {"model.from=" + kGoldenFolder + "models/t5"};
    }
    const auto settings = train_settings({.recipe = entry.path(), .set = set});
    EXPECT_GT(settings.size(), 100u) << entry.path();
  }
  EXPECT_GE(recipes, 2);
}

}  // namespace
}  // namespace heed
