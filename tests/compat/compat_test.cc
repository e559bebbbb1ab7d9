// Models written by earlier releases load and give the same results.
#include "base/files/file_testing.h"
#include "base/files/text_file.h"
#include "heed/tasks.h"
#include "heed/train.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

const std::string kReleases = std::string(HEED_TEST_DATA) + "/compat";
// Tolerance of log-probabilities and losses; another order of sums or another CPU changes them
// less.
constexpr double kRounding = 1e-3;

std::vector<std::string> releases() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(kReleases)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  return found;
}

// One line of scores.tsv.
struct Expected {
  std::string model, source, target;
  double log_probability = 0;
};

std::vector<Expected> expected_scores(const std::string& release) {
  std::vector<Expected> lines;
  LineReader reader(release + "/scores.tsv");
  for (std::string line; reader.next(line);) {
    std::vector<std::string> columns(1);
    for (const char c : line) {
      if (c == '\t') {
        columns.emplace_back();
      } else {
        columns.back() += c;
      }
    }
    EXPECT_EQ(columns.size(), 4u) << reader.where();
    lines.push_back({columns.at(0), columns.at(1), columns.at(2), std::stod(columns.at(3))});
  }
  return lines;
}

class CompatTest : public FolderTest {};

TEST_F(CompatTest, OldModelsSayWhatTheySaid) {
  ASSERT_FALSE(releases().empty());
  for (const std::string& release : releases()) {
    const std::vector<Expected> lines = expected_scores(release);
    EXPECT_GE(lines.size(), 10u) << release;
    for (const Expected& line : lines) {
      SCOPED_TRACE(release + ": " + line.model + ", " + line.source);
      const Scorer scorer(Model::load(release + "/" + line.model), {.threads = 1});
      const Scored scored = scorer.score({{.text = line.source, .second = line.target}}).at(0);
      EXPECT_NEAR(scored.log_probability, line.log_probability, kRounding);
    }
  }
}

TEST_F(CompatTest, OldTrainingsGoOn) {
  for (const std::string& release : releases()) {
    SCOPED_TRACE(release);
    const std::string training = release + "/training";
    const std::string out = path(fs::path(release).filename());
    fs::create_directories(out);
    fs::copy(training + "/checkpoints", out + "/checkpoints", fs::copy_options::recursive);
    std::string notes;
    TrainOptions options{.recipe = training + "/recipe.toml", .out = out, .threads = 1};
    options.set = {"data.folder=" + training};
    options.note = [&](std::string_view text) { notes.append(text).append("\n"); };
    const TrainResult result = train(options);
    EXPECT_THAT(notes, testing::HasSubstr("resuming at step 40"));
    EXPECT_EQ(result.steps, 60);
    EXPECT_NEAR(result.validation.at("loss"), std::stod(read_text(training + "/loss.txt")),
                kRounding);
  }
}

}  // namespace
}  // namespace heed
