// One client's connection, and all of them together.
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
    answering,  // it is ours to act
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

  // False: there is no room, and nobody to make any.
  bool add(Connection& connection);
  // Before its socket is closed, for the number may then be another's.
  void remove(Connection& connection);
  void close_waiting();
  void close_all();
  int count() const;
  int answering() const;

 private:
  const int most_;
  mutable std::mutex mutex_;
  std::list<Connection*> all_;
  int evicted_ = 0;  // still in all_, on their way out
};

// What cpp-httplib reads from and writes to. It asks for a byte at a time, so reading is buffered.
class ConnectionStream : public httplib::Stream {
 public:
  ConnectionStream(Connection& connection, const HttpLimits& limits)
      : connection_(connection), limits_(limits) {}

  // Waits for the first byte of the next request; false when none comes.
  bool wait_for_request();
  // A request begins: its head's time runs.
  void begin_request();
  void close_after_reply() { must_close_ = true; }
  bool must_close() const { return must_close_ || has_unread(); }
  // The body was not read to its end, so what comes next is no request.
  void leave_unread() { leaves_unread_ = true; }
  bool has_unread() const { return leaves_unread_ || is_broken_; }
  bool timed_out() const { return timed_out_; }
  // Whether the request has come as far as its handler.
  void set_answered() { is_answered_ = true; }
  bool is_answered() const { return is_answered_; }

  using httplib::Stream::write;
  bool is_readable() const override { return begin_ < end_ || wait(POLLIN, 0); }
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  // The library refuses numbers that select() cannot take; nothing here calls it.
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
  int line_ends_ = 0;  // in a row: two end the head
};

// Says something short to a client there is no room for, without waiting for it.
void refuse_connection(int socket);
// Lets the client read what was written though it still sends: closing a socket with unread bytes
// resets it, and the client may lose the reply. So what still comes is read for a moment.
void linger(int socket);

}  // namespace heed::serve
