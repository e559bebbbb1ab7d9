// A client connection, and the set of all connections.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>

#include <httplib.h>

#include "serve/http/http_server.h"

namespace heed::serve {

struct Connection {
  enum class Phase {
    waiting,    // for the first byte of a request
    reading,    // the rest of it
    answering,  // the server is working
  };
  int socket = -1;
  std::atomic<Phase> phase{Phase::waiting};
  std::atomic<std::chrono::steady_clock::time_point> since{std::chrono::steady_clock::now()};
  bool evicted = false;  // guarded by the Connections' mutex

  void enter(Phase next) {
    phase = next;
    since = std::chrono::steady_clock::now();
  }
  bool is_client_gone() const;
};

class Connections {
 public:
  explicit Connections(int most) : most_(most) {}

  // False: the limit is reached and no connection can be closed.
  bool add(Connection& connection);
  // Call before the socket is closed, because the descriptor may be reused.
  void remove(Connection& connection);
  void close_waiting();
  void close_all();
  int count() const;
  int answering() const;

 private:
  const int most_;
  mutable std::mutex mutex_;
  std::list<Connection*> all_;
  int evicted_ = 0;  // still in all_, being closed
};

// The stream of cpp-httplib. Buffered, because the library reads byte by byte.
class ConnectionStream : public httplib::Stream {
 public:
  ConnectionStream(Connection& connection, const HttpLimits& limits)
      : connection_(connection), limits_(limits) {}

  // Waits for the first byte of the next request; false on timeout.
  bool wait_for_request();
  // Starts the timeout of the head.
  void begin_request();
  void close_after_reply() { must_close_ = true; }
  bool must_close() const { return must_close_ || has_unread(); }
  // The body was not read completely, so the connection cannot be reused.
  void leave_unread() { leaves_unread_ = true; }
  bool has_unread() const { return leaves_unread_ || is_broken_; }
  bool timed_out() const { return timed_out_; }
  // Whether the handler was called.
  void set_answered() { is_answered_ = true; }
  bool is_answered() const { return is_answered_; }

  using httplib::Stream::write;
  bool is_readable() const override { return begin_ < end_ || wait(POLLIN, 0); }
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  // The library rejects descriptors that select() cannot handle; nothing here calls select().
  socket_t socket() const override { return -1; }

 private:
  bool wait(short events, double seconds) const;
  bool fill();
  void refuse_head(const char* status);
  void watch_head(const char* bytes, size_t size);

  Connection& connection_;
  const HttpLimits& limits_;
  char buffer_[8192];
  size_t begin_ = 0, end_ = 0;
  std::chrono::steady_clock::time_point deadline_{};
  bool in_head_ = false, must_close_ = false, leaves_unread_ = false, is_broken_ = false;
  bool timed_out_ = false;
  bool is_answered_ = false;
  int64_t head_bytes_ = 0;
  int line_ends_ = 0;  // consecutive; two end the head
};

// Sends 503 to a client beyond the limit, without blocking.
void refuse_connection(int socket);
// Reads remaining input for a short time before closing: closing a socket with unread bytes resets
// the connection, and the client may lose the reply.
void linger(int socket);

}  // namespace heed::serve
