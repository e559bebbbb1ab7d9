#include <filesystem>

#include "serve/serve_testing.h"

namespace heed::serve {
namespace {

class TaskRoutesTest : public ServeTest {
 protected:
  Json result(const std::string& task, const Json& call) const {
    const Received answer = client().post("/v1/heed/" + task, call);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
};

TEST_F(TaskRoutesTest, AnswersEachTaskWithTheModelThatCan) {
  start({"gpt", "en-de", "parser", "mlm", "labels", "tags"});

  const Json labels = result("classify", {{"input", {"the cat", "a dog"}}})["results"];
  ASSERT_EQ(labels.size(), 2U);
  double sum = 0;
  for (const auto& [name, p] : labels[0]["probabilities"].items()) sum += p.get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_TRUE(labels[0]["probabilities"].contains(labels[0]["label"].get<std::string>()));

  const Json tags = result("tag", {{"input", "she lives in new york"}})["results"][0];
  ASSERT_EQ(tags["words"].size(), 5U);
  EXPECT_EQ(tags["words"][4]["text"], "york");
  EXPECT_EQ(tags["words"][4]["span"], (Json{17, 21}));

  const Json fill = result("fill", {{"input", "the [MASK] sat"}, {"top", 3}})["results"][0];
  ASSERT_EQ(fill["masks"].size(), 1U);
  EXPECT_EQ(fill["masks"][0]["candidates"].size(), 3U);

  const Json tree = result("parse", {{"input", "the cat sat"}})["results"][0];
  for (const char* word : {"the", "cat", "sat"}) {
    EXPECT_THAT(tree["tree"].get<std::string>(), testing::HasSubstr(word));
  }

  const Json score = result("score", {{"model", "gpt"}, {"input", "the cat sat"}})["results"][0];
  EXPECT_LT(score["log_probability"].get<double>(), 0);
  EXPECT_EQ(score["ids"].size(), score["token_scores"].size());
  const Json pair = result(
      "score", {{"model", "en-de"}, {"input", "the cat"}, {"target", "a dog"}})["results"][0];
  EXPECT_EQ(pair["ids"].size(), 4U);

  const Json tokens = result("tokenize", {{"model", "mlm"}, {"input", "dogs"}})["results"][0];
  EXPECT_EQ(tokens["pieces"], (Json{"[CLS]", "dog", "##s", "[SEP]"}));
  EXPECT_EQ(tokens["offsets"][2], (Json{3, 4}));

  const Json next = result("predict", {{"model", "gpt"}, {"input", "the cat"}, {"top", 4}});
  ASSERT_EQ(next["next"].size(), 4U);
  EXPECT_GE(next["next"][0]["probability"].get<double>(),
            next["next"][1]["probability"].get<double>());
}

TEST_F(TaskRoutesTest, GivesAttentionMapsWhoseRowsAddUpToOne) {
  start({"en-de"});
  const Json maps = result("attend", {{"input", "the cat"}, {"target", "a dog"}});
  ASSERT_EQ(maps["layers"].size(), 6U);  // encoder, decoder and cross, two of each
  for (const Json& layer : maps["layers"]) {
    for (const Json& row : layer["heads"][0]) {
      double sum = 0;
      for (const Json& weight : row) sum += weight.get<double>();
      EXPECT_NEAR(sum, 1, 1e-3);  // of four digits each
    }
  }
  const Received drawing =
      client().post("/v1/heed/attend", {{"input", "the cat"}, {"format", "svg"}});
  EXPECT_EQ(drawing.type, "image/svg+xml");
  EXPECT_THAT(drawing.body, testing::HasSubstr("<svg"));
}

// A model of unknown task is not listed for parsing, but can be used by name.
TEST_F(TaskRoutesTest, ParsesWithTheParserUnlessAnotherModelIsNamed) {
  start({"en-de", "parser"});
  const Json call{{"input", "the cat"}};
  EXPECT_EQ(result("parse", call)["model"], "parser");
  EXPECT_EQ(result("parse", {{"input", "the cat"}, {"model", "en-de"}})["model"], "en-de");
  EXPECT_EQ(client().post("/translate", {{"q", "the"}, {"target", "de"}}).status, 200);
  EXPECT_EQ(client().post("/translate", {{"q", "the"}, {"model", "parser"}}).status, 200);
  const auto abilities = [&](const char* name) {
    return client().get(std::string("/v1/models/") + name).json()["abilities"].dump();
  };
  EXPECT_THAT(abilities("parser"), testing::HasSubstr("\"parse\""));
  EXPECT_THAT(abilities("parser"), testing::Not(testing::HasSubstr("\"translate\"")));
  EXPECT_THAT(abilities("en-de"), testing::HasSubstr("\"translate\""));
  EXPECT_THAT(abilities("en-de"), testing::Not(testing::HasSubstr("\"parse\"")));
}

TEST_F(TaskRoutesTest, SaysWhichModelIsMeantOrMissing) {
  start({"mlm", "labels"});
  EXPECT_EQ(client().post("/v1/heed/tokenize", {{"input", "x"}}).status, 400);  // which one?
  EXPECT_EQ(client().post("/v1/heed/tag", {{"input", "x"}}).status, 404);       // none can
  EXPECT_EQ(client().post("/v1/heed/fill", {{"input", "x"}, {"model", "labels"}}).status, 400);
  const Received no_mask = client().post("/v1/heed/fill", {{"input", "the cat"}});
  EXPECT_EQ(no_mask.status, 400);
  EXPECT_THAT(no_mask.body, testing::HasSubstr("no mask"));
  EXPECT_EQ(client().post("/v1/heed/classify", {{"input", {"a", "b"}}, {"second", "c"}}).status,
            400);
}

// One text alone would give a score that means nothing.
TEST_F(TaskRoutesTest, NeedsBothTextsOfAPair) {
  start({"grades", "pairs"});
  EXPECT_EQ(client().get("/v1/models/pairs").json()["takes_pairs"], true);
  EXPECT_FALSE(client().get("/v1/models/grades").json().contains("takes_pairs"));
  Json call{{"model", "pairs"}, {"input", "the cat"}};
  const Received alone = client().post("/v1/heed/classify", call);
  EXPECT_EQ(alone.status, 400);
  EXPECT_THAT(alone.body, testing::HasSubstr("second"));
  call["second"] = "a dog";
  EXPECT_EQ(client().post("/v1/heed/classify", call).status, 200);
  EXPECT_EQ(client().post("/v1/heed/classify", {{"model", "grades"}, {"input", "a"}}).status, 200);
}

TEST_F(TaskRoutesTest, BoundsAttentionMaps) {
  start({"mlm"}, {.limits = {.attend_weights = 4 * 49}});  // two layers of two heads
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the cat ";
  const Received answer = client().post("/v1/heed/attend", {{"input", text}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = answer.json();
  EXPECT_EQ(json["truncated"], true);
  EXPECT_EQ(json["source"].size(), 7U);
  EXPECT_EQ(json["layers"][1]["heads"][1].size(), 7U);
  // Four digits and a comma of each.
  EXPECT_LT(answer.body.size(), 4U * 49 * 12 + 1000);
}

// Every task checks its deadline before each text and within long ones.
TEST_F(TaskRoutesTest, StopsAtTheDeadline) {
  start({"gpt", "en-de"}, {.limits = {.run_seconds = 0}});
  const auto expect_late = [&](const std::string& path, Json call) {
    call["model"] = path == "/v1/heed/attend" ? "en-de" : "gpt";
    const Received answer = client().post(path, call);
    EXPECT_EQ(answer.status, 503) << path << answer.body;
    EXPECT_THAT(answer.body, testing::HasSubstr("time limit")) << path;
  };
  expect_late("/v1/heed/attend", {{"input", "the cat"}});
  expect_late("/v1/heed/attend", {{"input", "the cat"}, {"target", "the dog"}});
  expect_late("/v1/heed/tokenize", {{"input", "the cat"}});
  expect_late("/v1/heed/predict", {{"input", "the cat"}});
  Json echo{{"prompt", "the cat"}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 2}};
  expect_late("/v1/completions", echo);
  echo["stream"] = true, echo["model"] = "gpt";
  EXPECT_THAT(client().post("/v1/completions", echo).body, testing::HasSubstr("time limit"));
}

TEST_F(TaskRoutesTest, TellsNoFoldersOfTheServer) {
  const std::string folder = make_model("gpt");
  std::filesystem::remove(folder + "/vocab.txt");
  start({}, {.models = {{.name = "bare", .folder = folder}}});
  const Received answer =
      client().post("/v1/heed/tokenize", {{"model", "bare"}, {"input", "the cat"}});
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_THAT(answer.body, testing::HasSubstr("bare: no supported tokenizer"));
  EXPECT_THAT(answer.body, testing::Not(testing::HasSubstr(folder)));
}

}  // namespace
}  // namespace heed::serve
