// A server with tiny models of every kind, on a port of its own, and a client. For *_test.cc only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/files/file_testing.h"
#include "heed/serve.h"

namespace heed::serve {

using Json = nlohmann::ordered_json;

struct Received {
  int status = 0;  // 0: no answer at all
  std::string body{}, type{};
  std::map<std::string, std::string> headers{};

  Json json() const { return Json::parse(body, nullptr, false); }
};

using SentHeaders = std::map<std::string, std::string>;

class Client {
 public:
  explicit Client(int port) : port_(port) {}

  Received get(const std::string& path, const SentHeaders& headers = {}) const;
  Received post(const std::string& path, const Json& body, const SentHeaders& headers = {}) const {
    return post_text(path, body.dump(), "application/json", headers);
  }
  Received post_text(const std::string& path, const std::string& body, const std::string& type,
                     const SentHeaders& headers = {}) const;
  Received remove(const std::string& path, const SentHeaders& headers = {}) const;

 private:
  int port_;
};

// A connection on which any bytes can be sent. Blocks for `seconds` at most.
class RawClient {
 public:
  explicit RawClient(int port, double seconds = 20);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool send(std::string_view text) const;
  // All until the server closes, or until `end` has come.
  std::string receive(std::string_view end = {}) const;
  void close();

 private:
  int socket_ = -1;
};

// The kinds of models that a test wants: "gpt", "en-de", "parser", "mlm", "labels", "grades" (a
// regression), "pairs" (a regression of text pairs), "tags". Each is saved to its folder with weights
// from a seed and 40 words.
class ServeTest : public FolderTest {
 protected:
  void TearDown() override;

  std::string make_model(const std::string& kind) const;
  // Starts with these models; `options` may say more. Without a log of theirs, log_lines() has it.
  void start(const std::vector<std::string>& kinds, ServerOptions options = {});
  // Stops and waits until it has ended.
  void stop();

  Server& server() { return *server_; }
  int port() const { return server_->port(); }
  Client client() const { return Client(port()); }
  std::vector<std::string> log_lines() const {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }

 private:
  std::unique_ptr<Server> server_;
  std::thread running_;
  mutable std::mutex log_mutex_;
  std::vector<std::string> log_;
};

}  // namespace heed::serve
