#include "heed/sweep.h"

#include <nlohmann/json.hpp>

#include "base/files/file_testing.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

class SweepTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the red dog runs far on a mat\n";
    write("text.txt", text);
    recipe_ = write("recipe.toml", R"(
[model]
preset = "nanogpt-cpu"
width = 32
ffn = 64
decoder_layers = 1
[data]
train = ")" + path("text.txt") + R"("
unit = "file"
batch_tokens = 128
[tokenizer]
type = "byte"
[objective]
kind = "causal_lm"
block_tokens = 32
[train]
steps = 3
[validate]
share = 0.2
)");
  }

  SweepOptions options(const std::string& text) {
    SweepOptions o;
    o.file = write("sweep.toml", "recipe = \"" + recipe_ + "\"\n" + text);
    o.out = path("out");
    o.threads = 1;
    o.row_begins = [this](size_t row, const SweepPlan& plan) {
      begun_.push_back(plan.rows[row].name);
    };
    return o;
  }

  std::string recipe_;
  std::vector<std::string> begun_;
};

TEST_F(SweepTest, ReadsRowsListsAndGridsInTheirOrder) {
  const SweepPlan plan = plan_sweep(options(R"toml(
columns = ["perplexity", "loss"]
[set]
train.steps = 7
[[grid]]
name = "(D)"
model.dropout = [0.1, 0.2]
objective.label_smoothing = [0.0, 0.1]
[[rows]]
name = "as it is"
[[lists]]
model.heads = [1, 2]
model.head_dim = [32, 16]
[[rows]]
model.norm = "rms_norm"
)toml"));
  EXPECT_THAT(plan.set, ElementsAre("train.steps=7"));
  EXPECT_THAT(plan.columns, ElementsAre("perplexity", "loss"));
  std::vector<std::string> names;
  for (const SweepRow& row : plan.rows) names.push_back(row.name);
  EXPECT_THAT(
      names,
      ElementsAre("(D) dropout=0.1 label_smoothing=0.0", "(D) dropout=0.1 label_smoothing=0.1",
                  "(D) dropout=0.2 label_smoothing=0.0", "(D) dropout=0.2 label_smoothing=0.1",
                  "as it is", "heads=1 head_dim=32", "heads=2 head_dim=16", "norm=rms_norm"));
  EXPECT_THAT(plan.rows[6].changes,
              ElementsAre(Pair("model.heads", "2"), Pair("model.head_dim", "16")));
  EXPECT_EQ(plan.rows[4].folder, "as-it-is");
}

TEST_F(SweepTest, TheSignOfAnExponentMakesAnotherRow) {
  const SweepPlan plan = plan_sweep(options("[[grid]]\noptimizer.eps = [1e+06, 1e-06]\n"));
  EXPECT_THAT(plan.rows, SizeIs(2));
  EXPECT_EQ(plan.rows[0].folder, "eps=1e+06");
  EXPECT_EQ(plan.rows[1].folder, "eps=1e-06");
}

TEST_F(SweepTest, SaysWhatIsWrongBeforeAnythingRuns) {
  const auto problem = [&](const std::string& text, const std::string& message) {
    SCOPED_TRACE(text);
    const SweepOptions o = options(text);
    expect_error(ErrorCode::invalid_argument, message, [&] { sweep(o); });
  };
  problem("", "there must be rows");
  problem("rwos = 1", "unknown key rwos (did you mean rows?)");
  problem("[[rows]]\nmodel.hedas = 2", "unknown key model.hedas");
  problem("[[rows]]\nmodel.heads = 2\n[[rows]]\nmodel.heads = 3", "heads=3: ");  // 32 / 3
  problem("[[lists]]\nmodel.heads = [1, 2]\nmodel.ffn = [3]", "model.ffn has 1 values");
  problem("[[grid]]\nmodel.heads = 2", "must be a list");
  problem("[[rows]]\nname = \"a\"\n[[rows]]\nname = \"a\"", "got a second 'a'");
  problem("[[rows]]\nsteps = 2", "must be a section.key");
  std::string seeds = "1";
  for (int i = 2; i <= 32; ++i) seeds += ", " + std::to_string(i);
  problem("[[grid]]\ntrain.seed = [" + seeds + "]\ntrain.steps = [" + seeds + "]",
          "at most 1000 rows");
  problem("columns = [\"pearson\"]\n[[rows]]\nmodel.heads = 2", "got 'pearson'");
  problem("[[rows]\n", "sweep.toml:");
  SweepOptions none;
  none.file = path("absent.toml");
  expect_error(ErrorCode::not_found, "no such sweep", [&] { sweep(none); });
  EXPECT_TRUE(begun_.empty());
}

TEST_F(SweepTest, RunsEachRowOnceAndMakesATable) {
  const std::string text = R"(
columns = ["loss"]
[[rows]]
name = "base"
[[rows]]
name = "wild | row"
optimizer.learning_rate = 1e30
[[rows]]
name = "wide"
model.ffn = 96
)";
  const SweepResult first = sweep(options(text));
  EXPECT_TRUE(first.finished());
  EXPECT_EQ(first.failures(), 1u);
  EXPECT_EQ(first.rows[1].status, RowStatus::failed);
  EXPECT_THAT(first.rows[1].error, HasSubstr("diverged"));
  EXPECT_GT(first.rows[2].result.parameters, first.rows[0].result.parameters);
  EXPECT_TRUE(fs::exists(path("out") + "/wide/model.safetensors"));
  EXPECT_THAT(read_text(path("out") + "/table.txt"), HasSubstr("finished"));
  EXPECT_THAT(read_text(path("out") + "/table.md"), HasSubstr("| wild \\| row |"));
  EXPECT_THAT(read_text(path("out") + "/table.md"), HasSubstr("**"));
  const auto json = nlohmann::json::parse(read_text(path("out") + "/table.json"));
  EXPECT_EQ(json["rows"][2]["changes"]["model.ffn"], "96");
  EXPECT_EQ(json["rows"][2]["validation"]["loss"], first.rows[2].result.validation.at("loss"));
  const std::string html = read_text(path("out") + "/sweep.html");
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  // Again: what is finished is not run again, what failed is; and a row whose settings have
  // changed goes on.
  begun_.clear();
  const SweepResult again = sweep(options(text));
  EXPECT_THAT(begun_, ElementsAre("wild | row"));
  EXPECT_EQ(again.rows[0].result.validation, first.rows[0].result.validation);
  begun_.clear();
  const SweepResult longer = sweep(options(text + "train.steps = 5\n"));
  EXPECT_THAT(begun_, ElementsAre("wild | row", "wide"));
  EXPECT_EQ(longer.rows[2].result.steps, 5);
}

TEST(SweepTable, WritesAColumnWithAsManyDecimalsAndMakesRoomForNames) {
  SweepResult result;
  result.plan.columns = {"bleu"};
  const std::string longest(60, 'n');
  for (const auto& [name, bleu] : {std::pair{"short", 9.1287}, std::pair{longest.c_str(), 13.6}}) {
    SweepRowResult& row = result.rows.emplace_back();
    row.row.name = name;
    row.status = RowStatus::finished;
    row.result.validation = {{"bleu", bleu}};
  }
  const std::string table = sweep_table(result, TableFormat::text);
  EXPECT_THAT(table, HasSubstr(" 9.13 "));
  EXPECT_THAT(table, HasSubstr(" 13.60 "));
  const std::string html = sweep_html(result);
  EXPECT_THAT(html, HasSubstr("viewBox=\"0 0 940 "));  // 60 letters of 7, bars and figures
  EXPECT_THAT(html, HasSubstr("x=\"432\" y=\"63\" text-anchor=\"end\">" + longest));
}

TEST_F(SweepTest, AResultThatIsNoneIsMadeAnew) {
  const std::string text = "columns = [\"loss\"]\n[[rows]]\nname = \"base\"\n";
  const int64_t steps = sweep(options(text)).rows[0].result.steps;
  const std::string result = read_text(path("out/base/result.json"));
  const std::string line = "\"steps\": " + std::to_string(steps);
  ASSERT_THAT(result, HasSubstr(line));
  for (const char* number : {"1e66", "\"4\"", "null"}) {
    std::string other = result;
    other.replace(other.find(line), line.size(), std::string("\"steps\": ") + number);
    write("out/base/result.json", other);
    begun_.clear();
    EXPECT_EQ(sweep(options(text)).rows[0].result.steps, steps);
    EXPECT_THAT(begun_, ElementsAre("base")) << number;
  }
}

TEST_F(SweepTest, ChangedSettingsAreAnotherTraining) {
  const auto row = [](const std::string& rate, int steps) {
    return "columns = [\"loss\"]\n[[rows]]\nname = \"rate\"\noptimizer.learning_rate = " + rate +
           "\ntrain.steps = " + std::to_string(steps) + "\n";
  };
  const auto loss = [](const SweepResult& r) { return r.rows[0].result.validation.at("loss"); };
  const SweepResult high = sweep(options(row("1e-2", 4)));
  const SweepResult low = sweep(options(row("1e-4", 4)));
  EXPECT_NE(loss(low), loss(high));
  EXPECT_NE(low.rows[0].row.folder, high.rows[0].row.folder);
  SweepOptions fresh = options(row("1e-4", 4));
  fresh.out = path("fresh");
  EXPECT_EQ(loss(sweep(fresh)), loss(low));
  // Another seed too, and fewer steps than were trained; what was trained before is still there.
  SweepOptions seeded = options(row("1e-2", 4));
  seeded.set = {"train.seed=7"};
  EXPECT_NE(loss(sweep(seeded)), loss(high));
  EXPECT_EQ(sweep(options(row("1e-2", 2))).rows[0].result.steps, 2);
  begun_.clear();
  EXPECT_EQ(loss(sweep(options(row("1e-2", 4)))), loss(high));
  EXPECT_TRUE(begun_.empty());
  // More steps of what is in another folder go on there; fewer are one more training.
  std::string notes;
  SweepOptions more = options(row("1e-4", 6));
  more.note = [&](std::string_view text) { notes += std::string(text) + "\n"; };
  const SweepResult longer = sweep(more);
  EXPECT_EQ(longer.rows[0].row.folder, low.rows[0].row.folder);
  EXPECT_EQ(longer.rows[0].result.steps, 6);
  EXPECT_THAT(notes, HasSubstr("resuming at step 4 of 6"));
  const SweepResult shorter = sweep(options(row("1e-4", 2)));
  EXPECT_NE(shorter.rows[0].row.folder, low.rows[0].row.folder);
  EXPECT_EQ(shorter.rows[0].result.steps, 2);
  // However its folder is called.
  fs::rename(path("out") + "/" + low.rows[0].row.folder, path("out") + "/rate-0123abcd");
  begun_.clear();
  EXPECT_EQ(sweep(options(row("1e-4", 6))).rows[0].row.folder, "rate-0123abcd");
  EXPECT_TRUE(begun_.empty());
  // A row that was stopped half-way is no exception.
  std::atomic<bool> stop = false;
  SweepOptions half = options(row("1e-3", 4));
  half.out = path("half");
  half.stop = &stop;
  half.progress = [&](const TrainProgress& p) { stop = p.step == 2; };
  EXPECT_FALSE(sweep(half).finished());
  SweepOptions other = options(row("1e-4", 4));
  other.out = path("half");
  EXPECT_EQ(loss(sweep(other)), loss(low));
}

// As a sweep that was begun with an older Heed, whose recipes had one key less.
TEST_F(SweepTest, NewKeysAreNoChange) {
  const std::string text = "columns = [\"loss\"]\n[[rows]]\nname = \"base\"\nmodel.dropout = 0.1\n";
  const SweepResult first = sweep(options(text));
  const auto forget = [](Json& settings) { EXPECT_EQ(settings.erase("objective.r_drop"), 1u); };
  const std::string folder = path("out") + "/base";
  Json settings = Json::parse(read_text(folder + "/settings.json"));
  Json result = Json::parse(read_text(folder + "/result.json"));
  forget(settings);
  forget(result.at("settings"));
  std::ofstream(folder + "/settings.json") << settings.dump();
  std::ofstream(folder + "/result.json") << result.dump();
  begun_.clear();
  const SweepResult again = sweep(options(text));
  EXPECT_TRUE(begun_.empty());
  EXPECT_EQ(again.rows[0].result.validation, first.rows[0].result.validation);
  const SweepResult longer = sweep(options(text + "train.steps = 5\n"));
  EXPECT_EQ(longer.rows[0].row.folder, "base");
  EXPECT_EQ(longer.rows[0].result.steps, 5);
  // Another value of that key is a change, as one of any other.
  // After the longer run the settings have the key again.
  settings = Json::parse(read_text(folder + "/settings.json"));
  forget(settings);
  std::ofstream(folder + "/settings.json") << settings.dump();
  const SweepOptions changed = options(text + "train.steps = 5\nobjective.r_drop = 1.0\n");
  EXPECT_NE(plan_sweep(changed).rows[0].folder, "base");
}

TEST_F(SweepTest, StopsBetweenAndWithinRows) {
  std::atomic<bool> stop = false;
  SweepOptions o = options("[[grid]]\nmodel.ffn = [32, 64]\n");
  o.stop = &stop;
  o.progress = [&](const TrainProgress& p) { stop = p.step == 2; };
  const SweepResult stopped = sweep(o);
  EXPECT_FALSE(stopped.finished());
  EXPECT_EQ(stopped.rows[0].status, RowStatus::stopped);
  EXPECT_EQ(stopped.rows[1].status, RowStatus::waiting);
  EXPECT_THAT(sweep_table(stopped, TableFormat::text), HasSubstr("waiting"));
  stop = false;
  o.progress = {};
  EXPECT_TRUE(sweep(o).finished());
}

}  // namespace
}  // namespace heed
