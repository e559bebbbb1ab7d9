// Any bytes from a client: the server replies or closes the connection, and accepts the next one.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "serve/http/http_error.h"
#include "serve/http/http_server.h"

namespace {

using namespace heed::serve;

constexpr int64_t kMostBody = 1 << 12;

// Echoes the request.
HttpReply echo(HttpRequest& request) {
  try {
    const std::string body = request.read_body(kMostBody);
    if (body.size() > kMostBody) std::abort();
    return {.body = request.method + request.path + request.header("Accept") + body,
            .content_type = "text/plain"};
  } catch (const HttpError& error) {
    if (error.status() < 400 || error.status() > 499) std::abort();
    return {.status = error.status(), .close = true};
  }
}

// Runs until the fuzzer exits.
class EchoServer {
 public:
  EchoServer()
      : server_({.connections = 4, .head_bytes = 1 << 11}, echo),
        port_(server_.bind("127.0.0.1", 0)),
        thread_([this] { server_.listen(); }) {}
  ~EchoServer() {
    server_.stop();
    server_.abandon();
    thread_.join();
  }
  int port() const { return port_; }

 private:
  HttpServer server_;
  int port_;
  std::thread thread_;
};

// A connection to the server; -1 when no local port is free (closed connections hold theirs for a
// minute), or when the fuzzer's timer interrupts.
int connect_to(int port) {
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (client < 0) std::abort();
  if (connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return client;
  if (errno != EADDRNOTAVAIL && errno != EINTR) std::abort();  // the server has closed its socket
  close(client);
  return -1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const EchoServer server;
  const int client = connect_to(server.port());
  if (client < 0) return -1;  // reject the input
  for (size_t sent = 0; sent < size;) {
    const ssize_t n = send(client, data + sent, size - sent, MSG_NOSIGNAL);
    if (n <= 0) break;  // closed by the server
    sent += static_cast<size_t>(n);
  }
  shutdown(client, SHUT_WR);
  char reply[1 << 12];
  while (recv(client, reply, sizeof reply, 0) > 0) {
  }
  close(client);
  return 0;
}
