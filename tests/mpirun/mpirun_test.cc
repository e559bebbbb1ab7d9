// `mpirun -n 2 heed train …`: two processes learn what one does, and runs repeat bit for bit. All
// on this machine.
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files/file_testing.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// As root, with more ranks than cores, and without a network. Leak checks are off: MPI does not
// free all of its memory.
const std::string kMpirun =
    "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0 "
    "mpirun --oversubscribe --bind-to none --mca btl self,vader,tcp --mca btl_tcp_if_include lo "
    "--mca oob_tcp_if_include lo --mca btl_vader_single_copy_mechanism none -n ";

// Whether mpirun exists and can start processes; some containers forbid it.
bool has_mpirun() { return std::system((kMpirun + "2 true > /dev/null 2>&1").c_str()) == 0; }

class MpirunTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    if (!has_mpirun()) GTEST_SKIP() << "no mpirun that starts processes (Debian: openmpi-bin)";
    heed_ = fs::read_symlink("/proc/self/exe").parent_path() / "heed";
  }

  struct Outcome {
    int status;
    std::string out, err;
  };

  // `arguments` after `heed train RECIPE`. ranks = 0: without mpirun.
  Outcome train(int ranks, const std::string& arguments) const {
    const std::string recipe = std::string(HEED_TEST_DATA) + "/golden/train/tiny.toml";
    const std::string command = (ranks > 0 ? kMpirun + std::to_string(ranks) + " " : "") + heed_ +
                                " train " + recipe + " --threads 1 " + arguments + " > " +
                                path("out") + " 2> " + path("err");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(path("out")),
            read_text(path("err"))};
  }

  // The losses of a run by step.
  std::map<int64_t, double> losses(const std::string& name, const std::string& kind) const {
    std::map<int64_t, double> all;
    std::ifstream file(path(name) + "/log.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record["kind"] == kind) all[record["step"]] = record["loss"];
    }
    return all;
  }

  std::string heed_;
};

TEST_F(MpirunTest, TwoProcessesLearnWhatOneDoes) {
  const std::string steps = "--set train.steps=20 --set train.accumulate=2 --out ";
  const Outcome one = train(0, steps + path("one"));
  ASSERT_EQ(one.status, 0) << one.err;
  const Outcome two = train(2, steps + path("two") + " --json");
  ASSERT_EQ(two.status, 0) << two.err;
  const auto result = nlohmann::json::parse(two.out);  // one document: only rank 0 prints
  EXPECT_EQ(result["ranks"], 2);
  EXPECT_EQ(result["steps"], 20);
  for (const char* kind : {"train", "validate"}) {
    const auto a = losses("one", kind), b = losses("two", kind);
    ASSERT_EQ(a.size(), std::string(kind) == "train" ? 20u : 10u);
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [step, loss] : a) EXPECT_NEAR(b.at(step), loss, 1e-4 * loss) << kind << step;
  }
}

TEST_F(MpirunTest, RunsRepeatAndResumeBitForBit) {
  // One batch a step, which the two ranks must split.
  const std::string whole = "--set train.steps=12 --set train.checkpoint_every=5 --out ";
  const Outcome first = train(2, whole + path("whole"));
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("a step has 2 batches of 128 tokens"));
  ASSERT_EQ(train(2, whole + path("again")).status, 0);
  ASSERT_EQ(train(2, "--set train.steps=7 --out " + path("parts")).status, 0);
  const Outcome resumed = train(2, whole + path("parts"));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resuming at step 7 of 12"));
  const std::string model = read_text(path("whole") + "/model.safetensors");
  EXPECT_EQ(model, read_text(path("again") + "/model.safetensors"));
  EXPECT_EQ(model, read_text(path("parts") + "/model.safetensors"));
  EXPECT_EQ(losses("whole", "train"), losses("parts", "train"));
}

TEST_F(MpirunTest, AnErrorEndsAllAndIsToldOnce) {
  const Outcome outcome = train(2, "--set data.train='[\"no-such.txt\"]' --out " + path("run"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no-such.txt"));
  const size_t at = outcome.err.find("error: ");
  ASSERT_NE(at, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("error: ", at + 1), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace heed
