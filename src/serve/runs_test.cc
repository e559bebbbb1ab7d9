#include "serve/runs.h"

#include <filesystem>

#include "serve/serve_testing.h"

namespace heed::serve {
namespace {

class RunsTest : public ServeTest {
 protected:
  void SetUp() override {
    ServeTest::SetUp();
    for (const char* folder :
         {"runs/small/checkpoints", "runs/sweep/base", "runs/empty", "secret"}) {
      std::filesystem::create_directories(path(folder));
    }
    write("runs/small/log.jsonl",
          "{\"kind\":\"start\",\"step\":0,\"steps\":30}\n"
          "{\"kind\":\"train\",\"step\":10,\"loss\":3.5}\n"
          "{\"kind\":\"train\",\"step\":20,\"loss\":9.0}\n"
          "{\"kind\":\"train\",\"step\":20,\"loss\":2.5}\n"
          "no record\n[1]\n{\"kind\":\"train\",\"step\":\"x\"}\n"
          "{\"kind\":\"validate\",\"step\":20,\"bleu\":1.5,\"samples\":[\"a\"]}\n"
          "{\"kind\":\"train\",\"st");
    write("runs/sweep/table.json", "{\"columns\":[\"bleu\"],\"rows\":[]}");
    write("runs/sweep/base/log.jsonl", "{\"kind\":\"end\",\"step\":5}\n");
    write("secret/log.jsonl", "");
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const RunEntry& run : RunsFolder(path("runs")).list()) list.push_back(run.name);
    std::ranges::sort(list);
    return list;
  }
};

TEST_F(RunsTest, AreFoundWhereverTheyAre) {
  EXPECT_EQ(names(), (std::vector<std::string>{"small", "sweep", "sweep/base"}));
  EXPECT_TRUE(RunsFolder(path("none")).list().empty());
  EXPECT_EQ(RunsFolder(path("runs/small")).list().at(0).name, ".");
}

TEST_F(RunsTest, AStepThatCameTwiceIsToldOnce) {
  const Json run = *RunsFolder(path("runs")).read("small");
  ASSERT_EQ(run["records"].size(), 4U) << run;
  EXPECT_EQ(run["records"][2]["loss"], 2.5);
  EXPECT_FALSE(run["is_finished"].get<bool>());
  EXPECT_TRUE((*RunsFolder(path("runs")).read("sweep/base"))["is_finished"].get<bool>());
}

TEST_F(RunsTest, AnEndThatCameTwiceIsAnEnd) {
  const std::string end = "{\"kind\":\"end\",\"step\":30}\n";
  const std::string again = end + "{\"kind\":\"start\",\"step\":30}\n";
  write("runs/small/log.jsonl", again + end);
  EXPECT_TRUE((*RunsFolder(path("runs")).read("small"))["is_finished"].get<bool>());
  write("runs/small/log.jsonl", again);
  EXPECT_FALSE((*RunsFolder(path("runs")).read("small"))["is_finished"].get<bool>());
}

TEST_F(RunsTest, AreReadAnewOnlyWhenTheyHaveChanged) {
  const RunsFolder runs(path("runs"));
  const std::string version = (*runs.read("small"))["version"];
  EXPECT_TRUE((*runs.read("small", version))["unchanged"].get<bool>());
  write("runs/small/log.jsonl", "{\"kind\":\"end\",\"step\":30}\n");
  EXPECT_TRUE((*runs.read("small", version))["is_finished"].get<bool>());
}

TEST_F(RunsTest, WhatIsTooDeepToBeWrittenIsNotShown) {
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  write("runs/small/log.jsonl",
        "{\"kind\":\"train\",\"step\":1,\"loss\":" + deep + "}\n{\"kind\":\"end\",\"step\":2}\n");
  write("runs/sweep/table.json", "{\"rows\":" + deep + "}");
  const RunsFolder runs(path("runs"));
  EXPECT_EQ((*runs.read("small"))["records"].size(), 1U);
  EXPECT_TRUE((*runs.read("sweep"))["table"].is_null());
}

TEST_F(RunsTest, LongOnesAreThinned) {
  std::string log;
  for (int step = 1; step <= 9000; ++step) {
    log += "{\"kind\":\"train\",\"step\":" + std::to_string(step) + ",\"loss\":1}\n";
  }
  write("runs/small/log.jsonl", log);
  const Json records = (*RunsFolder(path("runs")).read("small"))["records"];
  EXPECT_LE(records.size(), 2001U);
  EXPECT_GE(records.size(), 1000U);
  EXPECT_EQ(records.back()["step"], 9000);
}

TEST_F(RunsTest, OtherFoldersCannotBeReached) {
  const RunsFolder runs(path("runs"));
  for (const char* name : {"../secret", "small/../../secret", "empty", "", "/"}) {
    EXPECT_FALSE(runs.read(name)) << name;
  }
}

TEST_F(RunsTest, AreServed) {
  start({}, {.runs_folder = path("runs")});
  const Json list = client().get("/v1/heed/runs").json();
  EXPECT_EQ(list["data"].size(), 3U) << list;
  const Received run = client().post("/v1/heed/run", {{"name", "sweep"}});
  EXPECT_EQ(run.json()["table"]["columns"], Json::array({"bleu"})) << run.body;
  EXPECT_EQ(client().post("/v1/heed/run", {{"name", "../secret"}}).status, 404);
}

TEST_F(RunsTest, AreNotServedUnlessAskedFor) {
  start({});
  EXPECT_EQ(client().get("/v1/heed/runs").json()["data"].size(), 0U);
  EXPECT_EQ(client().post("/v1/heed/run", {{"name", "."}}).status, 404);
}

}  // namespace
}  // namespace heed::serve
