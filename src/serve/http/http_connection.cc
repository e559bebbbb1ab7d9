#include "serve/http/http_connection.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace heed::serve {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double seconds_until(Clock::time_point time) {
  return std::chrono::duration<double>(time - Clock::now()).count();
}

bool poll_socket(int socket, short events, double seconds) {
  pollfd entry{.fd = socket, .events = events, .revents = 0};
  const auto deadline = after(std::max(seconds, 0.0));
  while (true) {
    const double left = std::max(seconds_until(deadline), 0.0);
    const int count = ::poll(&entry, 1, static_cast<int>(left * 1000) + (left > 0 ? 1 : 0));
    if (count >= 0) return count > 0;
    if (errno != EINTR) return false;
  }
}

bool send_all(int socket, std::string_view text, double seconds) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      text.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!poll_socket(socket, POLLOUT, seconds)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void name_of(bool remote, int socket, std::string& ip, int& port) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if ((remote ? ::getpeername(socket, generic, &size) : ::getsockname(socket, generic, &size)) !=
      0) {
    return;
  }
  char host[NI_MAXHOST], service[NI_MAXSERV];
  if (::getnameinfo(generic, size, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return;
  }
  ip = host, port = std::atoi(service);
}

}  // namespace

bool Connection::is_client_gone() const {
  char byte;
  const ssize_t count = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

// ---- Connections -------------------------------------------------------------------------------

bool Connections::add(Connection& connection) {
  const std::lock_guard lock(mutex_);
  if (static_cast<int>(all_.size()) - evicted_ >= most_) {
    Connection* longest = nullptr;
    for (Connection* other : all_) {
      if (other->evicted || other->phase == Connection::Phase::answering) continue;
      if (longest == nullptr || other->since.load() < longest->since.load()) longest = other;
    }
    if (longest == nullptr) return false;
    longest->evicted = true, ++evicted_;
    ::shutdown(longest->socket, SHUT_RDWR);  // wakes its thread, which closes it
  }
  all_.push_back(&connection);
  return true;
}

void Connections::remove(Connection& connection) {
  const std::lock_guard lock(mutex_);
  if (connection.evicted) --evicted_;
  all_.remove(&connection);
}

void Connections::close_waiting() {
  const std::lock_guard lock(mutex_);
  for (Connection* connection : all_) {
    if (connection->phase == Connection::Phase::waiting) ::shutdown(connection->socket, SHUT_RDWR);
  }
}

void Connections::close_all() {
  const std::lock_guard lock(mutex_);
  for (Connection* connection : all_) ::shutdown(connection->socket, SHUT_RDWR);
}

int Connections::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(all_.size());
}

int Connections::answering() const {
  const std::lock_guard lock(mutex_);
  const auto is_answering = [](const Connection* connection) {
    return connection->phase == Connection::Phase::answering;
  };
  return static_cast<int>(std::ranges::count_if(all_, is_answering));
}

// ---- ConnectionStream --------------------------------------------------------------------------

bool ConnectionStream::wait(short events, double seconds) const {
  return poll_socket(connection_.socket, events, seconds);
}

bool ConnectionStream::wait_for_request() {
  connection_.enter(Connection::Phase::waiting);
  if (begin_ < end_) return true;  // pipelined
  return wait(POLLIN, limits_.idle_seconds) && !connection_.is_client_gone();
}

void ConnectionStream::begin_request() {
  connection_.enter(Connection::Phase::reading);
  in_head_ = true, head_bytes_ = 0, line_ends_ = 0, timed_out_ = is_answered_ = false;
  deadline_ = after(limits_.head_seconds);
}

bool ConnectionStream::is_writable() const {
  return !is_broken_ && !connection_.is_client_gone() && wait(POLLOUT, limits_.write_seconds);
}

bool ConnectionStream::fill() {
  while (true) {
    const double left = seconds_until(deadline_);
    if (left <= 0 || !wait(POLLIN, left)) {
      timed_out_ = true;
      if (in_head_) refuse_head("408 Request Timeout");
      return false;
    }
    const ssize_t count = ::recv(connection_.socket, buffer_, sizeof buffer_, MSG_DONTWAIT);
    if (count > 0) {
      begin_ = 0, end_ = static_cast<size_t>(count);
      return true;
    }
    if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return false;
  }
}

ssize_t ConnectionStream::read(char* to, size_t size) {
  if (is_broken_) return -1;
  if (begin_ == end_ && !fill()) return timed_out_ ? -1 : 0;
  const size_t count = std::min(size, end_ - begin_);
  std::copy_n(buffer_ + begin_, count, to);
  begin_ += count;
  if (in_head_) watch_head(to, count);
  return is_broken_ ? -1 : static_cast<ssize_t>(count);
}

// The library reads the head line by line without limits, so its end and length are tracked here.
void ConnectionStream::watch_head(const char* bytes, size_t size) {
  for (size_t i = 0; i < size && in_head_; ++i) {
    if (bytes[i] == '\n') {
      in_head_ = ++line_ends_ < 2;
    } else if (bytes[i] != '\r') {
      line_ends_ = 0;
    }
    if (++head_bytes_ > limits_.head_bytes) {
      return refuse_head("431 Request Header Fields Too Large");
    }
  }
  if (!in_head_) deadline_ = after(limits_.body_seconds);
}

// The library would send nothing, or 400.
void ConnectionStream::refuse_head(const char* status) {
  if (head_bytes_ > 0) {
    send_all(
        connection_.socket,
        std::string("HTTP/1.1 ") + status + "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        1);
  }
  is_broken_ = true;
}

ssize_t ConnectionStream::write(const char* from, size_t size) {
  if (is_broken_) return -1;
  if (!send_all(connection_.socket, {from, size}, limits_.write_seconds)) {
    is_broken_ = true;
    return -1;
  }
  return static_cast<ssize_t>(size);
}

void ConnectionStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  name_of(true, connection_.socket, ip, port);
}

void ConnectionStream::get_local_ip_and_port(std::string& ip, int& port) const {
  name_of(false, connection_.socket, ip, port);
}

void refuse_connection(int socket) {
  constexpr std::string_view kBusy =
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
      "Content-Length: 0\r\n\r\n";
  ::send(socket, kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
}

void linger(int socket) {
  ::shutdown(socket, SHUT_WR);
  constexpr int64_t kMostBytes = 8 << 20;
  char rest[16384];
  const auto deadline = after(1);
  for (int64_t bytes = 0; bytes < kMostBytes && seconds_until(deadline) > 0;) {
    if (!poll_socket(socket, POLLIN, seconds_until(deadline))) break;
    const ssize_t count = ::recv(socket, rest, sizeof rest, MSG_DONTWAIT);
    if (count <= 0) break;
    bytes += count;
  }
}

}  // namespace heed::serve
