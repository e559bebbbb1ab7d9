#include <cmath>
#include <cstring>
#include <filesystem>

#include "heed/tokenizer.h"
#include "serve/serve_testing.h"

namespace heed::serve {
namespace {

using testing::HasSubstr;

class OpenaiRoutesTest : public ServeTest {
 protected:
  // The events of a stream, without [DONE], which must end it.
  static std::vector<Json> events_of(const std::string& body) {
    std::vector<Json> events;
    size_t at = 0;
    bool is_done = false;
    for (size_t end; (end = body.find("\n\n", at)) != std::string::npos; at = end + 2) {
      EXPECT_EQ(body.compare(at, 6, "data: "), 0) << body.substr(at, 40);
      const std::string data = body.substr(at + 6, end - at - 6);
      is_done = data == "[DONE]";
      if (!is_done) events.push_back(Json::parse(data));
    }
    EXPECT_TRUE(is_done);
    EXPECT_EQ(at, body.size());
    return events;
  }
};

TEST_F(OpenaiRoutesTest, CompletesAndCounts) {
  start({"gpt"});
  const Json call{{"model", "gpt"}, {"prompt", "the cat"}, {"max_tokens", 5}, {"temperature", 0}};
  const Received answer = client().post("/v1/completions", call);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = answer.json();
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["model"], "gpt");
  ASSERT_EQ(json["choices"].size(), 1U);
  EXPECT_EQ(json["choices"][0]["index"], 0);
  const int64_t written = json["usage"]["completion_tokens"].get<int64_t>();
  EXPECT_GE(written, 1);
  EXPECT_LE(written, 5);
  EXPECT_EQ(json["choices"][0]["finish_reason"], written == 5 ? "length" : "stop");
  EXPECT_EQ(json["usage"]["total_tokens"], json["usage"]["prompt_tokens"].get<int64_t>() + written);
  EXPECT_EQ(client().post("/v1/completions", call).json()["choices"], json["choices"]);
}

TEST_F(OpenaiRoutesTest, NamesTheSeed) {
  start({"gpt"});
  Json call{{"prompt", "the cat"}, {"max_tokens", 8}, {"temperature", 1}};
  const Json drawn = client().post("/v1/completions", call).json();
  ASSERT_TRUE(drawn["seed"].is_number_integer()) << drawn;
  EXPECT_NE(client().post("/v1/completions", call).json()["seed"], drawn["seed"]);
  call["seed"] = drawn["seed"];
  const Json again = client().post("/v1/completions", call).json();
  EXPECT_EQ(again["choices"], drawn["choices"]);
  EXPECT_EQ(again["seed"], drawn["seed"]);
  call["temperature"] = 0;
  EXPECT_FALSE(client().post("/v1/completions", call).json().contains("seed"));
}

TEST_F(OpenaiRoutesTest, CutsAPromptOnlyIfAsked) {
  start({"gpt"});
  Json call{{"prompt", std::vector<int>(100, 5)}, {"max_tokens", 4}, {"temperature", 0}};
  const Received refused = client().post("/v1/completions", call);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body,
              HasSubstr("at most 64 tokens, the context length of the model, got 100"));
  call["truncate"] = "left";
  const Json cut = client().post("/v1/completions", call).json();
  EXPECT_EQ(cut["truncated"], true) << cut;
  call["prompt"] = "the cat";
  EXPECT_FALSE(client().post("/v1/completions", call).json().contains("truncated"));
  call["truncate"] = "middle";
  EXPECT_EQ(client().post("/v1/completions", call).status, 400);
}

TEST_F(OpenaiRoutesTest, StreamsTheSameText) {
  start({"gpt"});
  Json call{{"prompt", {"the cat", "she"}},
            {"max_tokens", 12},
            {"temperature", 0.8},
            {"seed", 5},
            {"n", 2}};
  const Json whole = client().post("/v1/completions", call).json();
  ASSERT_EQ(whole["choices"].size(), 4U) << whole;
  call["stream"] = true, call["stream_options"] = {{"include_usage", true}};
  const Received answer = client().post("/v1/completions", call);
  EXPECT_THAT(answer.type, HasSubstr("text/event-stream"));
  const std::vector<Json> events = events_of(answer.body);
  ASSERT_GE(events.size(), 5U);
  std::vector<std::string> texts(4), finish(4);
  for (const Json& event : events) {
    for (const Json& choice : event["choices"]) {
      const auto index = choice["index"].get<size_t>();
      ASSERT_EQ(finish.at(index), "") << "something came after the end";
      texts.at(index) += choice["text"].get<std::string>();
      if (!choice["finish_reason"].is_null()) finish[index] = choice["finish_reason"];
    }
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(texts[i], whole["choices"][i]["text"]);
    EXPECT_EQ(finish[i], whole["choices"][i]["finish_reason"]);
  }
  EXPECT_EQ(events.back()["usage"], whole["usage"]);
  EXPECT_NE(texts[0], texts[1]);  // two samples of one prompt
}

TEST_F(OpenaiRoutesTest, GivesLogProbabilities) {
  start({"gpt"});
  const Json json = client()
                        .post("/v1/completions", {{"prompt", "the cat"},
                                                  {"max_tokens", 3},
                                                  {"temperature", 0},
                                                  {"logprobs", 2},
                                                  {"echo", true}})
                        .json();
  const Json& choice = json["choices"][0];
  EXPECT_THAT(choice["text"].get<std::string>(), testing::StartsWith("the cat"));
  const Json& logprobs = choice["logprobs"];
  const size_t count = logprobs["tokens"].size();
  ASSERT_GE(count, 4U);
  ASSERT_EQ(logprobs["token_logprobs"].size(), count);
  for (size_t i = 0; i < count; ++i) {  // [CLS] comes before the first
    EXPECT_EQ(logprobs["top_logprobs"][i].size(), 2U);
    EXPECT_LT(logprobs["token_logprobs"][i].get<double>(), 0);
  }
  // Greedy is the argmax, which is listed first.
  EXPECT_NEAR(logprobs["token_logprobs"][count - 1].get<double>(),
              logprobs["top_logprobs"][count - 1].begin().value().get<double>(), 1e-5);
  const Json ids =
      client()
          .post("/v1/completions",
                {{"prompt", {5, 6}}, {"max_tokens", 0}, {"logprobs", 2}, {"echo", true}})
          .json()["choices"][0]["logprobs"];
  EXPECT_EQ(ids["tokens"], (Json{"the", " cat"}));
  EXPECT_TRUE(ids["token_logprobs"][0].is_null());  // nothing comes before it
  EXPECT_TRUE(ids["top_logprobs"][0].is_null());
}

TEST_F(OpenaiRoutesTest, RefusesInTheirForm) {
  start({"gpt", "mlm"});
  const auto refused = [&](const Json& call, int status, const std::string& param) {
    const Received answer = client().post("/v1/completions", call);
    EXPECT_EQ(answer.status, status) << call << answer.body;
    const Json error = answer.json()["error"];
    EXPECT_TRUE(error["message"].is_string()) << answer.body;
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["param"], param.empty() ? Json() : Json(param)) << answer.body;
  };
  refused({{"prompt", "x"}, {"model", "other"}}, 404, "model");
  refused({{"prompt", "x"}, {"model", "mlm"}}, 400, "model");
  refused({{"model", "gpt"}}, 400, "prompt");
  refused({{"prompt", 5}}, 400, "prompt");
  refused({{"prompt", "x"}, {"temperature", 3}}, 400, "temperature");
  refused({{"prompt", "x"}, {"tempreature", 1}}, 400, "tempreature");
  refused({{"prompt", "x"}, {"max_tokens", 5000}}, 400, "max_tokens");
  refused({{"prompt", "x"}, {"n", 17}}, 400, "n");
  refused({{"prompt", "x"}, {"suffix", "y"}}, 400, "suffix");
  refused({{"prompt", {99999}}}, 400, "");  // no such token
  EXPECT_EQ(client().get("/v1/completions").status, 405);
  EXPECT_EQ(client().get("/v1/nothing").status, 404);
}

TEST_F(OpenaiRoutesTest, EmbedsAsFloatsAndAsBase64) {
  start({"mlm"});
  const Received answer = client().post("/v1/embeddings", {{"input", {"the cat", "a dog runs"}}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = answer.json();
  ASSERT_EQ(json["data"].size(), 2U);
  EXPECT_EQ(json["data"][1]["index"], 1);
  EXPECT_EQ(json["usage"]["prompt_tokens"], 4 + 6);  // [CLS] … [SEP]; dog runs is run ##s
  const auto floats = json["data"][1]["embedding"].get<std::vector<float>>();
  ASSERT_EQ(floats.size(), 32U);
  double square = 0;
  for (const float x : floats) square += static_cast<double>(x) * x;
  EXPECT_NEAR(square, 1, 1e-5);

  const Json packed =
      client()
          .post("/v1/embeddings", {{"input", "a dog runs"}, {"encoding_format", "base64"}})
          .json();
  const auto text = packed["data"][0]["embedding"].get<std::string>();
  EXPECT_EQ(text.size(), (32 * 4 + 2) / 3 * 4U);
  // The first three bytes.
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint32_t group = 0;
  for (size_t i = 0; i < 4; ++i) group = group << 6 | static_cast<uint32_t>(digits.find(text[i]));
  uint32_t bits;
  std::memcpy(&bits, floats.data(), 4);
  EXPECT_EQ(group, (bits & 0xff) << 16 | (bits & 0xff00) | (bits >> 16 & 0xff));
}

// Everything that can be said of what is listed beside a text.
void expect_listed(const Json& choice, size_t top) {
  const Json& logprobs = choice["logprobs"];
  const size_t count = logprobs["tokens"].size();
  ASSERT_EQ(logprobs["text_offset"].size(), count);
  ASSERT_EQ(logprobs["token_logprobs"].size(), count);
  ASSERT_EQ(logprobs["top_logprobs"].size(), count);
  std::string so_far;
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(logprobs["text_offset"][i], so_far.size()) << i << choice;  // all of it is ASCII
    so_far += logprobs["tokens"][i].get<std::string>();
    if (logprobs["token_logprobs"][i].is_null()) continue;
    // No two of them have the same name.
    EXPECT_EQ(logprobs["top_logprobs"][i].size(), top) << choice;
  }
  EXPECT_EQ(so_far, choice["text"]) << choice;
}

// Words with their spaces, as SentencePiece has them: "▁the", "▁", "t", …
TEST_F(OpenaiRoutesTest, ListsTokensWithTheirSpaces) {
  const std::string folder = make_model("gpt");
  std::string text;
  for (int i = 0; i < 50; ++i) {
    text +=
        "the cat sat on the mat\nshe lives in new york\na dog runs fast\nthe hat is at the cat\n";
  }
  const std::string corpus = write("corpus.txt", text);
  train_tokenizer({.type = "bpe", .vocabulary = 40, .files = {corpus}, .threads = 1})->save(folder);
  std::filesystem::remove(folder + "/vocab.txt");
  start({}, {.models = {{.name = "gpt", .folder = folder}}});
  Json call{{"prompt", "the cat sat on the"},
            {"max_tokens", 12},
            {"seed", 3},
            {"temperature", 1},
            {"logprobs", 8}};
  const Received plain = client().post("/v1/completions", call);
  ASSERT_EQ(plain.status, 200) << plain.body;
  const Json choice = plain.json()["choices"][0];
  const auto answer = choice["text"].get<std::string>();
  ASSERT_THAT(answer, HasSubstr(" ")) << "choose another seed";
  expect_listed(choice, 8);
  EXPECT_EQ(choice["logprobs"]["text_offset"][0], 0);

  call["echo"] = true;
  const Json echoed = client().post("/v1/completions", call).json()["choices"][0];
  EXPECT_EQ(echoed["text"], "the cat sat on the" + answer);
  expect_listed(echoed, 8);

  // The list ends where the text does, whatever else was written before that was seen.
  call["echo"] = false, call["stop"] = answer.substr(answer.size() / 2, 3);
  const Json stopped = client().post("/v1/completions", call).json()["choices"][0];
  const auto shorter = stopped["text"].get<std::string>();
  EXPECT_LT(shorter.size(), answer.size());
  EXPECT_EQ(stopped["finish_reason"], "stop");
  const Json& offsets = stopped["logprobs"]["text_offset"];
  EXPECT_LT(offsets.size(), choice["logprobs"]["text_offset"].size());
  for (const Json& offset : offsets) EXPECT_LT(offset.get<size_t>(), shorter.size());
}

TEST_F(OpenaiRoutesTest, ListsNothingOfTheTemplate) {
  start({"gpt"});  // reads "[CLS] the cat [SEP]"
  const Json call{{"prompt", "The  cat"}, {"max_tokens", 0}, {"logprobs", 2}, {"echo", true}};
  const Json choice = client().post("/v1/completions", call).json()["choices"][0];
  EXPECT_EQ(choice["logprobs"]["tokens"], (Json{"The", "  cat"})) << choice;
  EXPECT_EQ(choice["logprobs"]["text_offset"], (Json{0, 3}));
  expect_listed(choice, 2);
}

TEST_F(OpenaiRoutesTest, TakesWhatOpenaiTakes) {
  start({"gpt"}, {.limits = {.new_tokens = 20, .answers = 4}});
  Json call{{"prompt", "the cat"}, {"max_tokens", 8}, {"temperature", 1.5}, {"top_p", 0}};
  const Json first = client().post("/v1/completions", call).json()["choices"];
  call["temperature"] = 0, call.erase("top_p");
  EXPECT_EQ(client().post("/v1/completions", call).json()["choices"], first);  // the argmax
  call["temperature"] = 1, call["seed"] = -5;
  const Received negative = client().post("/v1/completions", call);
  ASSERT_EQ(negative.status, 200) << negative.body;
  EXPECT_EQ(client().post("/v1/completions", call).json()["choices"], negative.json()["choices"]);

  // What is described is what is taken.
  const Json api = client().get("/openapi.json").json();
  const Json& fields = api["paths"]["/v1/completions"]["post"]["requestBody"]["content"]
                          ["application/json"]["schema"]["properties"];
  for (const auto& [name, most] : {std::pair("max_tokens", 20), std::pair("n", 4)}) {
    EXPECT_EQ(fields[name]["maximum"], most);
    Json large{{"prompt", "the"}, {"max_tokens", 1}, {name, most}};
    EXPECT_EQ(client().post("/v1/completions", large).status, 200);
    large[name] = most + 1;
    EXPECT_EQ(client().post("/v1/completions", large).status, 400);
  }
}

}  // namespace
}  // namespace heed::serve
