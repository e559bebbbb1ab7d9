// What clients do that are slow, broken or hostile, while others want to be served.
#include "serve/http/http_server.h"

#include <sys/resource.h>

#include <algorithm>

#include "serve/serve_testing.h"

namespace heed::serve {
namespace {

using testing::HasSubstr;

class HttpServerTest : public ServeTest {
 protected:
  void expect_fine() {
    EXPECT_EQ(client().post("/v1/completions", {{"prompt", "the"}, {"max_tokens", 2}}).status, 200);
  }
  std::string exchange(std::string_view text) {
    RawClient raw(port());
    EXPECT_TRUE(raw.send(text));
    return raw.receive();
  }
  static std::string head(const std::string& extra) {
    return "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
           extra + "\r\n";
  }
};

TEST_F(HttpServerTest, RefusesBodiesThatAreNoRequest) {
  start({"gpt"});
  const auto status = [&](const std::string& body) {
    return client().post_text("/v1/completions", body, "application/json").status;
  };
  EXPECT_EQ(status("{\"prompt\": \"x"), 400);
  EXPECT_EQ(status("{\"prompt\": \"\xff\xfe\"}"), 400);
  EXPECT_EQ(status(std::string(1 << 20, '[')), 400);
  EXPECT_EQ(status("{\"prompt\": \"" + std::string(200'000, 'x') + "\"}"), 413);
  EXPECT_EQ(client().post_text("/v1/completions", "<x/>", "text/xml").status, 415);
  expect_fine();
}

TEST_F(HttpServerTest, RefusesBodiesThatAreTooLong) {
  start({"gpt"}, {.limits = {.body_bytes = 1000}});
  const std::string long_body(50'000, ' ');
  EXPECT_EQ(client().post_text("/v1/completions", long_body, "application/json").status, 413);
  // Without a length that would tell beforehand.
  std::string chunks;
  for (int i = 0; i < 100; ++i) chunks += "3e8\r\n" + std::string(1000, ' ') + "\r\n";
  EXPECT_THAT(exchange(head("Transfer-Encoding: chunked\r\n") + chunks), HasSubstr("HTTP/1.1 413"));
  expect_fine();
}

TEST_F(HttpServerTest, RefusesHeadsThatAreNone) {
  start({"gpt"});
  EXPECT_THAT(exchange("hello\r\n\r\n"), testing::AnyOf("", HasSubstr("HTTP/1.1 400")));
  EXPECT_THAT(exchange("GET /" + std::string(40'000, 'x')), HasSubstr("HTTP/1.1 431"));
  EXPECT_THAT(exchange("GET / HTTP/1.1\r\nX: " + std::string(40'000, 'x')), HasSubstr("431"));
  expect_fine();
}

// Where a request ends must be beyond doubt: a proxy before us may see it elsewhere.
TEST_F(HttpServerTest, RefusesLengthsThatAreNone) {
  start({"gpt"});
  const std::string call = "{\"prompt\": \"the\", \"max_tokens\": 1}";
  const std::string size = std::to_string(call.size());
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  for (const std::string& bad :
       {std::string("Content-Length: -5\r\n"), std::string("Content-Length: abc\r\n"),
        std::string("Content-Length: 1e1\r\n"),
        std::string("Content-Length: 99999999999999999999\r\n"),
        "Content-Length: " + size + "\r\nContent-Length: 3\r\n",
        "Content-Length: 0\r\nContent-Length: " + size + "\r\n",
        "Content-Length: " + size + "\r\n" + chunked, chunked + chunked,
        std::string("Transfer-Encoding: gzip\r\n")}) {
    const std::string reply = exchange(head(bad) + call);
    EXPECT_THAT(reply, testing::StartsWith("HTTP/1.1 400")) << bad << reply;
    EXPECT_THAT(reply, HasSubstr("Connection: close")) << bad;
    EXPECT_EQ(reply.find("HTTP/1.1", 1), std::string::npos) << "a second answer to " << bad;
  }
  // The same length twice says the same.
  const std::string twice = "Content-Length: " + size + "\r\n";
  EXPECT_THAT(exchange(head(twice + twice + "Connection: close\r\n") + call),
              testing::StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(exchange("GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"),
              testing::StartsWith("HTTP/1.1 400"));
  expect_fine();
}

TEST_F(HttpServerTest, WaitsOnlySoLongForARequest) {
  start({"gpt"}, {.limits = {.head_seconds = 0.5, .body_seconds = 0.5, .idle_seconds = 0.5}});
  RawClient silent(port()), half_head(port()), half_body(port());
  ASSERT_TRUE(half_head.send("POST /v1/compl"));
  ASSERT_TRUE(half_body.send(head("Content-Length: 100\r\n") + "{\"prompt\""));
  EXPECT_EQ(silent.receive(), "");
  EXPECT_THAT(half_head.receive(), HasSubstr("HTTP/1.1 408"));
  EXPECT_THAT(half_body.receive(), HasSubstr("HTTP/1.1 408"));
  expect_fine();
}

TEST_F(HttpServerTest, MakesRoomForNewcomersByDroppingTheIdle) {
  start({"gpt"}, {.limits = {.connections = 8}});
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 30; ++i) {
    idle.push_back(std::make_unique<RawClient>(port()));
    if (i % 2 == 0) idle.back()->send("POST /v1/completions HTTP/1.1\r\n");
  }
  for (int i = 0; i < 5; ++i) expect_fine();
}

TEST_F(HttpServerTest, AnswersSeveralRequestsOfOneConnection) {
  start({"gpt"});
  RawClient raw(port());
  const std::string call = "{\"prompt\": \"the\", \"max_tokens\": 1}";
  const std::string one = head("Content-Length: " + std::to_string(call.size()) + "\r\n") + call;
  ASSERT_TRUE(raw.send(one + one));  // at once
  ASSERT_TRUE(raw.send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  const std::string all = raw.receive();
  size_t count = 0;
  for (size_t at = 0; (at = all.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 3U) << all;
}

TEST_F(HttpServerTest, CancelsTheWorkOfAClientThatGoes) {
  start({"gpt"}, {.limits = {.running = 1, .waiting = 0}});
  const Json call{
      {"prompt", std::vector<std::string>(200, "the cat")}, {"max_tokens", 60}, {"stream", true}};
  const std::string body = call.dump();
  {
    RawClient raw(port());
    ASSERT_TRUE(raw.send(head("Content-Length: " + std::to_string(body.size()) + "\r\n") + body));
    EXPECT_THAT(raw.receive("data: "), HasSubstr("200 OK"));
    const Received refused = client().post("/v1/completions", {{"prompt", "the"}});
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.headers.at("Retry-After"), "1");
    EXPECT_EQ(refused.json()["error"]["type"], "rate_limit_error");
  }
  // The only place is free again long before all of it could have been written.
  for (int i = 0; i < 100; ++i) {
    if (client().post("/v1/completions", {{"prompt", "the"}, {"max_tokens", 1}}).status == 200)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ADD_FAILURE() << "the place was not given back";
}

// Some seconds of work for the little model.
Json long_call() {
  return {{"prompt", std::vector<std::string>(256, "the cat")}, {"max_tokens", 60}, {"beam", 16}};
}

TEST_F(HttpServerTest, LetsNobodyWaitForever) {
  start({"gpt"}, {.limits = {.running = 1, .waiting = 4, .wait_seconds = 0.1}});
  const std::string body = long_call().dump();
  RawClient runs(port());
  ASSERT_TRUE(runs.send(head("Content-Length: " + std::to_string(body.size()) + "\r\n") + body));
  while (client().get("/metrics").body.find("heed_requests_running 1") == std::string::npos) {
    std::this_thread::yield();
  }
  const Received waited = client().post("/v1/completions", {{"prompt", "the"}});
  ASSERT_EQ(waited.status, 503) << waited.body;
  EXPECT_EQ(waited.headers.at("Retry-After"), "5");
}

TEST_F(HttpServerTest, LetsNobodyRunForever) {
  start({"gpt"}, {.limits = {.run_seconds = 0.5}});
  Json call = long_call();
  const Received late = client().post("/v1/completions", call);
  ASSERT_EQ(late.status, 503) << late.body;
  EXPECT_THAT(late.body, HasSubstr("time limit of 0.5 s"));
  EXPECT_EQ(late.headers.at("Retry-After"), "5");
  // A stream that has begun ends with the same words.
  call["stream"] = true;
  const Received stream = client().post("/v1/completions", call);
  EXPECT_EQ(stream.status, 200);
  EXPECT_THAT(stream.body, HasSubstr("time limit of 0.5 s"));
  EXPECT_THAT(stream.body, testing::EndsWith("data: [DONE]\n\n"));
  expect_fine();
}

// The tasks that take many texts, and ask between them.
class HttpServerTasksTest : public HttpServerTest,
                            public testing::WithParamInterface<const char*> {};

TEST_P(HttpServerTasksTest, CancelsTheWorkOfAClientThatGoes) {
  const std::string route = std::string("/v1/heed/") + GetParam();
  start({"gpt"});
  const std::string text = "the cat sat on the mat . ";
  std::string long_text;
  while (long_text.size() + text.size() < 90'000) long_text += text;
  const Json call{{"input", std::vector<std::string>(40, long_text)}};  // 800,000 tokens
  const std::string body = call.dump();
  {
    RawClient raw(port());
    ASSERT_TRUE(
        raw.send("POST " + route +
                 " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body));
    while (client().get("/metrics").body.find("heed_requests_running 1") == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  const auto has_gone = [&](const std::string& line) {
    return line.find("\"" + route + "\"") != std::string::npos &&
           line.find("\"status\":499") != std::string::npos;
  };
  for (int i = 0; i < 600 && std::ranges::none_of(log_lines(), has_gone); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(std::ranges::any_of(log_lines(), has_gone));
  expect_fine();
}

INSTANTIATE_TEST_SUITE_P(Tasks, HttpServerTasksTest, testing::Values("score", "tokenize"));

// All of it at once.
TEST_F(HttpServerTest, KeepsAnsweringInAFlood) {
  constexpr int kConnections = 1000;
  rlimit files{};  // often 1,024 at first, and both ends are ours
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  ::setrlimit(RLIMIT_NOFILE, &files);
  start({"gpt"},
        {.limits = {.connections = 64, .head_seconds = 2, .body_seconds = 2, .idle_seconds = 2}});
  const Json call{{"prompt", "the cat"}, {"max_tokens", 30}, {"stream", true}};
  const std::string body = call.dump();
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n";
  std::vector<std::unique_ptr<RawClient>> flood;
  int fine = 0;
  for (int i = 0; i < kConnections; ++i) {
    flood.push_back(std::make_unique<RawClient>(port(), 10));
    RawClient& raw = *flood.back();
    switch (i % 8) {
      case 0:  // half-open
        break;
      case 1:
        raw.send("POST /v1/comp");
        break;
      case 2:
        raw.send(head(length) + body.substr(0, 5));
        break;
      case 3:
        raw.send(head("Content-Length: 999999999999\r\n"));
        break;
      case 4:
        raw.send(head("Content-Length: 4\r\n") + "{\"\xff\"");
        break;
      case 5:
        raw.send(head("Content-Length: 2000\r\n") + std::string(2000, '['));
        break;
      case 6:  // and hangs up in the middle of the stream
        raw.send(head(length) + body);
        raw.close();
        break;
      default:
        raw.send(std::string(5000, '\0'));
    }
    if (i % 20 == 19) expect_fine(), ++fine;
  }
  // Connections that were not closed for new ones get an error; silent ones get nothing.
  const std::map<int, std::string> expected = {{1, "408"}, {2, "408"}, {3, "413"},
                                               {4, "400"}, {5, "400"}, {7, "408"}};
  std::map<int, int> told;
  for (int i = 0; i < kConnections; ++i) {
    if (i % 8 == 6) continue;  // it has gone
    const std::string reply = flood[static_cast<size_t>(i)]->receive("\r\n\r\n");
    const auto status = expected.find(i % 8);
    if (status == expected.end()) {
      EXPECT_EQ(reply, "");
      continue;
    }
    if (reply.empty()) continue;
    EXPECT_THAT(reply, testing::StartsWith("HTTP/1.1 " + status->second)) << "kind " << i % 8;
    ++told[i % 8];
  }
  for (const auto& [kind, status] : expected) EXPECT_GT(told[kind], 0) << "kind " << kind;
  flood.clear();
  expect_fine(), ++fine;
  // Nothing that was accepted is lost: all of it is in the log, and the place it had is free.
  const auto is_answer = [](const std::string& line) {
    const Json json = Json::parse(line);
    return json.value("route", "") == "/v1/completions" && json["status"] == 200;
  };
  EXPECT_GE(std::ranges::count_if(log_lines(), is_answer), fine);
  for (int i = 0; i < 100; ++i) {
    if (client().get("/metrics").body.find("heed_requests_running 0\n") != std::string::npos)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ADD_FAILURE() << client().get("/metrics").body;
}

// A reply that is half sent when the server is told to end.
TEST(HttpServerAloneTest, SendsRepliesToTheirEndBeforeItEnds) {
  constexpr size_t kBytes = 64 << 20;  // more than sockets hold
  HttpServer server({}, [&](HttpRequest&) { return HttpReply{.body = std::string(kBytes, 'x')}; });
  const int port = server.bind("127.0.0.1", 0);
  std::thread running([&] { server.listen(); });
  RawClient slow(port);
  ASSERT_TRUE(slow.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  const std::string begin = slow.receive("\r\n\r\n");
  EXPECT_THAT(begin, HasSubstr("200 OK"));
  server.stop();
  EXPECT_FALSE(server.wait_until_sent(0.05));
  std::thread reading([&] {
    const std::string rest = slow.receive();
    const size_t head = begin.find("\r\n\r\n") + 4;
    EXPECT_EQ(begin.size() - head + rest.size(), kBytes);
  });
  EXPECT_TRUE(server.wait_until_sent(30));
  server.abandon();
  reading.join();
  running.join();
}

}  // namespace
}  // namespace heed::serve
