// The HTTP transport: a request in, a reply out, with timeouts and size limits.
//
//   HttpServer server({}, [](HttpRequest& request) { return HttpReply{.body = "hello"}; });
//   int port = server.bind("127.0.0.1", 0);
//   server.listen();                            // until stop(), from another thread
//
// Built on cpp-httplib. Each connection has a thread, up to a limit. At the limit, the connection
// that has waited longest for input is closed for a new one, so slow senders and idle connections
// cannot block others. Head and body have total timeouts and size limits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace heed::serve {

struct HttpLimits {
  int connections = 512;
  int64_t head_bytes = 32 << 10;
  double head_seconds = 10;   // total, from the first byte to the last
  double body_seconds = 30;   // likewise
  double idle_seconds = 60;   // keep-alive timeout
  double write_seconds = 30;  // without any progress in sending
};

class HttpRequest {
 public:
  std::string method, path, remote;
  std::string malformed{};  // why the framing of the request is ambiguous; empty: valid

  virtual ~HttpRequest() = default;
  virtual std::string header(const std::string& name) const = 0;  // empty: not present
  // Reads the body. Throws HttpError: 413 if it is longer, 408 or 400 if it cannot be read.
  // multipart/form-data is converted to url-encoding.
  virtual std::string read_body(int64_t most_bytes) = 0;
  virtual bool is_multipart() const = 0;
  // Whether the client has disconnected.
  virtual bool is_client_gone() const = 0;
};

// Writes a part of a streamed reply; false: the client has disconnected.
using HttpWriter = std::function<bool(std::string_view text)>;

struct HttpReply {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers{};
  // If set, replaces the body: called once, writes the whole reply.
  std::function<void(const HttpWriter& write, const std::function<bool()>& is_client_gone)>
      stream{};
  // Called after the reply was sent or failed, with the number of body bytes.
  std::function<void(int64_t bytes)> done{};
  bool close = false;  // the connection, afterwards
};

class HttpServer {
 public:
  // The handler must not throw.
  using Handler = std::function<HttpReply(HttpRequest& request)>;

  HttpServer(const HttpLimits& limits, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Port 0: any free port. Returns the port; throws Error if binding fails.
  int bind(const std::string& host, int port);
  // Blocks until stop() was called and all connections are closed.
  void listen();
  // Accepts no new connections and closes idle ones.
  void stop();
  // After stop(): whether all started replies were sent within the time.
  bool wait_until_sent(double seconds) const;
  // Closes all connections immediately.
  void abandon();

  int connections() const;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace heed::serve
