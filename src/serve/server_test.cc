#include "heed/serve.h"

#include <atomic>
#include <cstring>

#include "serve/serve_testing.h"

namespace heed::serve {
namespace {

using testing::HasSubstr;

class ServerTest : public ServeTest {};

const SentHeaders kUser{{"Authorization", "Bearer user"}};
const SentHeaders kAdmin{{"Authorization", "Bearer boss"}};

TEST_F(ServerTest, TellsHowItIsAndWhatItServes) {
  start({"gpt", "en-de"});
  EXPECT_EQ(client().get("/healthz").json()["status"], "ok");
  EXPECT_EQ(client().get("/readyz").json()["status"], "ready");
  const Json models = client().get("/v1/models").json();
  ASSERT_EQ(models["data"].size(), 2U);
  EXPECT_EQ(models["data"][1]["id"], "en-de");
  EXPECT_EQ(models["data"][1]["languages"]["targets"], Json::array({"de"}));
  EXPECT_EQ(client().get("/v1/models/gpt").json()["family"], "decoder_only");
  EXPECT_EQ(client().get("/v1/models/none").status, 404);
  // What is loaded is asked, and not the folder, which may hold another by now.
  write("gpt/config.json", "{");
  const Json about = client().get("/v1/heed/models/gpt").json();
  int64_t parameters = 0;
  for (const Json& weight : about["weights"]) {
    parameters += weight["shape"][0].get<int64_t>() * weight["shape"][1].get<int64_t>();
  }
  EXPECT_EQ(about["parameters"], parameters);
  EXPECT_EQ(about["weights"][0]["name"], "embedding.tokens");

  client().post("/v1/completions", {{"model", "gpt"}, {"prompt", "the cat"}});
  const std::string metrics = client().get("/metrics").body;
  EXPECT_THAT(metrics,
              HasSubstr("heed_requests_total{route=\"/v1/completions\",status=\"200\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("heed_kv_blocks{model=\"gpt\"}"));
  EXPECT_THAT(metrics, HasSubstr("process_resident_memory_bytes"));

  const Json api = client().get("/openapi.json").json();
  EXPECT_EQ(api["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]
               ["schema"]["required"],
            Json::array({"q"}));
  EXPECT_TRUE(api["paths"].contains("/v1/heed/models/{name}"));
}

// Every path and method that /openapi.json lists is there, and needs what it says it does.
TEST_F(ServerTest, DescribesItsRoutesAsTheyAre) {
  start({"gpt", "en-de", "mlm", "labels", "tags"}, {.admin_key = "boss", .runs_folder = path("")});
  const Json api = client().get("/openapi.json").json();
  ASSERT_EQ(api["openapi"], "3.0.3");
  int bodies = 0;
  for (const auto& [pattern, methods] : api["paths"].items()) {
    std::string address = pattern;
    for (const auto& [name, value] : {std::pair("{name}", "gpt"), std::pair("{file}", "main.js")}) {
      const size_t at = address.find(name);
      if (at != std::string::npos) address.replace(at, std::strlen(name), value);
    }
    for (const auto& [method, operation] : methods.items()) {
      SCOPED_TRACE(method + " " + pattern);
      EXPECT_EQ(operation.contains("parameters"), pattern.find('{') != std::string::npos);
      if (method == "get") {
        EXPECT_EQ(client().get(address).status, 200);
        EXPECT_EQ(client().remove(address).status == 405, !methods.contains("delete"));
        continue;
      }
      if (method != "post") continue;
      ++bodies;
      const Json& content = operation["requestBody"]["content"];
      const Json& schema = content["application/json"]["schema"];
      const Received empty = client().post(address, Json::object(), kAdmin);
      for (const Json& required : schema.value("required", Json::array())) {
        ASSERT_EQ(empty.status, 400) << empty.body;
        EXPECT_THAT(empty.body, HasSubstr(required.get<std::string>() + " is missing"));
      }
      EXPECT_EQ(client().post(address, {{"no_such_field", 1}}, kAdmin).status, 400);
      const bool takes_form = content.contains("application/x-www-form-urlencoded");
      const Received form =
          client().post_text(address, "x=1", "application/x-www-form-urlencoded", kAdmin);
      EXPECT_EQ(form.status, takes_form ? 400 : 415);
    }
  }
  EXPECT_GE(bodies, 13);
}

TEST_F(ServerTest, AsksForKeys) {
  start({"gpt"}, {.api_keys = {"user"}, .admin_key = "boss"});
  const Received without = client().get("/v1/models");
  EXPECT_EQ(without.status, 401);
  EXPECT_EQ(without.json()["error"]["type"], "authentication_error");
  EXPECT_EQ(client().get("/v1/models", {{"Authorization", "Bearer use"}}).status, 401);
  EXPECT_EQ(client().get("/v1/models", kUser).status, 200);
  EXPECT_EQ(client().get("/v1/models", {{"Authorization", "bearer user"}}).status, 200);
  EXPECT_EQ(client().get("/v1/models", {{"Authorization", "Basic user"}}).status, 401);
  EXPECT_EQ(client().get("/v1/models", {{"X-API-Key", "user"}}).status, 200);
  EXPECT_EQ(client().get("/healthz").status, 200);
  EXPECT_EQ(client().remove("/v1/heed/models/gpt", kUser).status, 403);
}

TEST_F(ServerTest, LoadsAndUnloadsForTheAdminAlone) {
  start({"gpt"}, {.admin_key = "boss"});
  const Json call{{"name", "new"}, {"folder", make_model("mlm")}};
  EXPECT_EQ(client().post("/v1/heed/models", call).status, 403);
  const Received loaded = client().post("/v1/heed/models", call, kAdmin);
  EXPECT_EQ(loaded.status, 201) << loaded.body;
  EXPECT_EQ(client().post("/v1/heed/fill", {{"input", "the [MASK]"}}).status, 200);
  EXPECT_EQ(client().post("/v1/heed/models", {{"folder", path("none")}}, kAdmin).status, 404);
  EXPECT_EQ(client().post("/v1/heed/models", {{"name", "a/b"}, {"folder", "x"}}, kAdmin).status,
            400);
  EXPECT_EQ(client().remove("/v1/heed/models/new", kAdmin).status, 200);
  EXPECT_EQ(client().remove("/v1/heed/models/new", kAdmin).status, 404);
  EXPECT_EQ(client().post("/v1/heed/fill", {{"input", "the [MASK]"}}).status, 404);
}

TEST_F(ServerTest, ReloadsAndKeepsWhatCannotBeLoaded) {
  start({"gpt"});
  server().reload();
  EXPECT_EQ(client().post("/v1/completions", {{"prompt", "the"}}).status, 200);
  write("gpt/config.json", "{");
  server().reload();
  EXPECT_THAT(log_lines().back(), HasSubstr("gpt: "));
  EXPECT_EQ(client().post("/v1/completions", {{"prompt", "the"}}).status, 200);
}

TEST_F(ServerTest, AllowsOtherPagesOnlyWhenAsked) {
  start({"gpt"}, {.cors_origin = "https://example.org"});
  const Received answer = client().get("/healthz");
  EXPECT_EQ(answer.headers.at("Access-Control-Allow-Origin"), "https://example.org");
  RawClient raw(port());
  raw.send("OPTIONS /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(raw.receive(), HasSubstr("204 No Content"));
}

TEST_F(ServerTest, AllowsNoOtherPagesOtherwise) {
  start({"gpt"});
  EXPECT_EQ(client().get("/healthz").headers.count("Access-Control-Allow-Origin"), 0U);
}

TEST_F(ServerTest, LogsNobodysText) {
  start({"gpt"});
  client().post("/v1/completions", {{"prompt", "sesame"}, {"model", "tahini"}});
  client().post("/v1/completions", {{"prompt", "sesame"}});
  client().get("/sesame?q=sesame");
  bool has_request = false;
  for (const std::string& line : log_lines()) {
    EXPECT_THAT(line, testing::Not(HasSubstr("sesame")));
    const Json json = Json::parse(line);
    has_request = has_request || json.value("route", "") == "/v1/completions";
  }
  EXPECT_TRUE(has_request);
}

TEST_F(ServerTest, RefusesWhatItCannotServe) {
  expect_error(ErrorCode::invalid_argument, "model names must be unique", [&] {
    const std::string folder = make_model("gpt");
    Server({.port = 0, .models = {{.folder = folder}, {.folder = folder}}});
  });
  expect_error(ErrorCode::not_found, "",
               [&] { Server({.port = 0, .models = {{.folder = path("none")}}}); });
  start({"gpt"});
  expect_error(ErrorCode::invalid_argument, "cannot listen", [&] { Server({.port = port()}); });
  // 192.0.2.1 is in examples alone: no machine has it.
  for (const char* host : {"not a host", "192.0.2.1"}) {
    try {
      Server({.host = host, .port = 0});
      FAIL() << host;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot listen on " + std::string(host)));
      EXPECT_THAT(error.hint(), HasSubstr("--host")) << error.what();
    }
  }
}

// Every request gets a reply, and run() returns.
TEST_F(ServerTest, StopsWithEverythingAnswered) {
  start({"gpt"});
  constexpr int kClients = 8;
  std::atomic<int> answered{0}, refused{0}, other{0};
  std::atomic<bool> has_ended{false};
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      while (!has_ended) {
        const Received answer = client().post(
            "/v1/completions", {{"prompt", "the cat"}, {"max_tokens", 40}, {"seed", i}});
        if (answer.status == 200) {
          ++answered;
        } else if (answer.status == 503 || answer.status == 0) {
          ++refused;  // 0: the port was closed already
          return;
        } else {
          ++other;
          return;
        }
      }
    });
  }
  while (answered < kClients) std::this_thread::yield();
  stop();
  has_ended = true;
  for (std::thread& thread : clients) thread.join();
  EXPECT_EQ(other, 0);
  EXPECT_GT(refused, 0);
  // Each answer that the server counts has reached its client: nothing was begun and dropped.
  int logged = 0;
  for (const std::string& line : log_lines()) {
    const Json json = Json::parse(line);
    logged += json.value("route", "") == "/v1/completions" && json["status"] == 200;
  }
  EXPECT_EQ(logged, answered);
}

TEST_F(ServerTest, StopsAtOnceWhenNothingRuns) {
  start({"gpt"});
  RawClient idle(port());
  ASSERT_TRUE(idle.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(idle.receive("ok"), HasSubstr("200 OK"));
  const auto start = std::chrono::steady_clock::now();
  stop();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(ServerTest, LetsBrowsersSendWhatTheirClientsDo) {
  start({"gpt"}, {.cors_origin = "*"});
  RawClient raw(port());
  raw.send(
      "OPTIONS /v1/completions HTTP/1.1\r\nHost: x\r\nOrigin: https://example.org\r\n"
      "Access-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: authorization,content-type,x-stainless-lang\r\n"
      "Connection: close\r\n\r\n");
  const std::string reply = raw.receive();
  EXPECT_THAT(reply, HasSubstr("204 No Content"));
  EXPECT_THAT(reply, HasSubstr("Access-Control-Allow-Headers: "
                               "authorization,content-type,x-stainless-lang\r\n"));
  EXPECT_THAT(reply, HasSubstr("Access-Control-Max-Age: "));
  const Received answer = client().get("/healthz");
  EXPECT_EQ(answer.headers.at("Access-Control-Expose-Headers"), "X-Request-Id, Retry-After");
  EXPECT_THAT(answer.headers.at("Access-Control-Allow-Headers"), HasSubstr("Authorization"));
}

TEST_F(ServerTest, CountsTheTokensOfEveryTask) {
  start({"en-de", "parser"});
  const auto tokens = [&](const std::string& direction) {
    const std::string text = client().get("/metrics").body;
    const std::string name = "\nheed_" + direction + "_tokens_total ";
    return std::stoll(text.substr(text.find(name) + name.size()));
  };
  EXPECT_EQ(tokens("input"), 0);
  client().post("/translate", {{"q", {"the cat", "a dog"}}, {"target", "de"}});
  EXPECT_EQ(tokens("input"), 8);  // each with [CLS] and [SEP]
  const int64_t written = tokens("output");
  EXPECT_GT(written, 0);
  client().post("/v1/heed/parse", {{"input", "the cat sat"}});
  EXPECT_EQ(tokens("input"), 13);
  EXPECT_GE(tokens("output"), written);
}

TEST_F(ServerTest, SaysWhatAPathTakesInItsOwnForm) {
  start({"en-de"});
  const Received theirs = client().get("/translate");
  EXPECT_EQ(theirs.status, 405);
  EXPECT_EQ(theirs.headers.at("Allow"), "POST");
  EXPECT_TRUE(theirs.json()["error"].is_string()) << theirs.body;
  const Received ours = client().remove("/v1/models");
  EXPECT_EQ(ours.status, 405);
  EXPECT_EQ(ours.headers.at("Allow"), "GET");
  EXPECT_TRUE(ours.json()["error"].is_object()) << ours.body;
}

}  // namespace
}  // namespace heed::serve
