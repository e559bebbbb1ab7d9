// HTTP as the rest of serve/ sees it: a request in, a reply out, and limits on everybody's
// patience.
//
//   HttpServer server({}, [](HttpRequest& request) { return HttpReply{.body = "hello"}; });
//   int port = server.bind("127.0.0.1", 0);
//   server.listen();                            // until stop(), from another thread
//
// cpp-httplib reads requests and writes responses; what it leaves open is decided here. Each
// connection has a thread of its own, and there are only so many: when all are taken, the one that
// has been waiting longest for its client's next byte is closed in favour of the newcomer, so slow
// senders and idle connections never keep others out. A request's head and body must arrive within
// their times, however slowly they drip, and neither may be larger than its limit.
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
  double head_seconds = 10;   // from its first byte to its last
  double body_seconds = 30;   // likewise
  double idle_seconds = 60;   // between the requests of one connection
  double write_seconds = 30;  // that a client may take to read anything at all
};

class HttpRequest {
 public:
  std::string method, path, remote;
  std::string malformed{};  // why its head cannot be trusted to tell where it ends; empty: it can

  virtual ~HttpRequest() = default;
  virtual std::string header(const std::string& name) const = 0;  // empty: there is none
  // The body, read now. Throws HttpError: 413 when it is longer, 408 or 400 when it does not come.
  // A form of type multipart/form-data comes as if it were url-encoded.
  virtual std::string read_body(int64_t most_bytes) = 0;
  virtual bool is_multipart() const = 0;
  // Whether the client has hung up: nobody will read the reply.
  virtual bool is_client_gone() const = 0;
};

// What a reply that comes piece by piece is written to; false: the client has gone.
using HttpWriter = std::function<bool(std::string_view text)>;

struct HttpReply {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers{};
  // If set, instead of the body: called once, and writes everything.
  std::function<void(const HttpWriter& write, const std::function<bool()>& is_client_gone)>
      stream{};
  // Called when the reply has been sent, or could not be; with how many bytes of body there were.
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

  // Port 0: any that is free. Returns the port; throws Error when it cannot be had.
  int bind(const std::string& host, int port);
  // Until stop() was called and every connection is closed.
  void listen();
  // Takes no new connections, and closes those that wait for their next request.
  void stop();
  // After stop(): whether every reply that was begun is sent, within the time.
  bool wait_until_sent(double seconds) const;
  // Closes all of them, whatever they are at.
  void abandon();

  int connections() const;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace heed::serve
