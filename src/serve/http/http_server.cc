#include "serve/http/http_server.h"

#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <system_error>
#include <thread>

#include "heed/error.h"
#include "serve/http/http_connection.h"
#include "serve/http/http_error.h"

namespace heed::serve {
namespace {

// Additional threads that reject connections beyond the limit.
constexpr int kRefusers = 4;
// The listen backlog.
constexpr int kBacklog = 1024;

// One thread per open connection; threads are reused.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(int most) : most_(most) {}

  void enqueue(std::function<void()> job) override {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
      if (static_cast<int>(jobs_.size()) > idle_ && static_cast<int>(threads_.size()) < most_) {
        try {
          threads_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
          // No more threads available: the job waits for a free one.
        }
      }
    }
    wake_.notify_one();
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      --idle_;
      if (jobs_.empty()) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  const int most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  int idle_ = 0;
  bool stopping_ = false;
};

std::string url_encoded(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

// Request smuggling: a proxy in front may frame an ambiguous head differently and mix up requests
// (RFC 9112, 6.3). Empty: valid.
std::string length_problem(const httplib::Request& request) {
  const auto values = [&](const char* name) {
    std::vector<std::string> all;
    for (size_t i = 0; i < request.get_header_value_count(name); ++i) {
      all.push_back(request.get_header_value(name, i));
    }
    return all;
  };
  const std::vector<std::string> lengths = values("Content-Length");
  const std::vector<std::string> codings = values("Transfer-Encoding");
  constexpr size_t kMostDigits = 18;  // always fits an int64_t
  for (const std::string& length : lengths) {
    const bool is_number =
        !length.empty() && length.size() <= kMostDigits &&
        std::ranges::all_of(length, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!is_number) return "Content-Length must be a number of bytes";
    if (length != lengths.front()) return "Content-Length must be given once";
  }
  if (codings.empty()) return {};
  if (!lengths.empty()) return "Content-Length and Transfer-Encoding must not be combined";
  std::string coding = codings.front();
  for (char& c : coding) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (codings.size() > 1 || coding != "chunked") return "Transfer-Encoding must be chunked";
  return {};
}

// The connection of this thread, because handlers of the library get no socket.
struct Current {
  Connection* connection = nullptr;
  ConnectionStream* stream = nullptr;
};
thread_local Current current;

class LibraryRequest : public HttpRequest {
 public:
  LibraryRequest(const httplib::Request& request, const httplib::ContentReader* reader)
      : request_(request),
        reader_(reader),
        connection_(*current.connection),
        stream_(*current.stream) {
    method = request.method, path = request.path, remote = request.remote_addr;
    malformed = length_problem(request);
    if (reader == nullptr) connection_.enter(Connection::Phase::answering);
  }

  std::string header(const std::string& name) const override {
    return request_.get_header_value(name);
  }

  bool is_multipart() const override { return request_.is_multipart_form_data(); }
  bool is_client_gone() const override { return connection_.is_client_gone(); }

  // Whether unread bytes of this request remain on the connection.
  bool has_unread_body() const {
    if (!malformed.empty()) return true;
    const std::string length = request_.get_header_value("Content-Length");
    const bool has_body =
        request_.has_header("Transfer-Encoding") || (!length.empty() && length != "0");
    return has_body && !is_read_;
  }

  std::string read_body(int64_t most_bytes) override {
    const auto too_long = [&] {
      return HttpError(413, "the body is longer than " + std::to_string(most_bytes) + " bytes",
                       "body_too_long");
    };
    const std::string length = request_.get_header_value("Content-Length");
    const bool is_chunked = request_.has_header("Transfer-Encoding");
    // Without a length there is no body; the library would read until the connection closes.
    if (reader_ == nullptr || (length.empty() && !is_chunked)) {
      connection_.enter(Connection::Phase::answering);
      return {};
    }
    if (std::strtoll(length.c_str(), nullptr, 10) > most_bytes) throw too_long();
    std::string body;
    bool is_too_long = false;
    const auto receive = [&](const char* data, size_t size) {
      // Counted after decompression, against zip bombs.
      is_too_long = static_cast<int64_t>(body.size() + size) > most_bytes;
      if (!is_too_long) body.append(data, size);
      return !is_too_long;
    };
    if (request_.is_multipart_form_data()) {
      is_read_ = read_multipart(receive, body);
    } else {
      is_read_ = (*reader_)(receive);
    }
    connection_.enter(Connection::Phase::answering);
    if (is_too_long) throw too_long();
    if (is_read_) return body;
    if (stream_.timed_out()) throw HttpError(408, "the body did not arrive in time", "timeout");
    throw HttpError(400, "the body could not be read", "invalid_body");
  }

 private:
  bool read_multipart(const httplib::ContentReceiver& receive, std::string& body) {
    std::string value;
    bool has_part = false;
    const auto end_part = [&] {
      const std::string encoded = has_part ? url_encoded(value) : "";
      value.clear();
      return receive(encoded.data(), encoded.size());
    };
    const bool is_whole = (*reader_)(
        [&](const httplib::MultipartFormData& part) {
          if (!end_part()) return false;
          has_part = true;
          const std::string start = (body.empty() ? "" : "&") + url_encoded(part.name) + "=";
          return receive(start.data(), start.size());
        },
        [&](const char* data, size_t size) {
          value.append(data, size);
          // Counted now, corrected when the part is complete.
          const size_t before = body.size();
          const bool fits = receive(value.data(), value.size());
          body.resize(std::min(before, body.size()));
          return fits;
        });
    return is_whole && end_part();
  }

  const httplib::Request& request_;
  const httplib::ContentReader* reader_;
  Connection& connection_;
  ConnectionStream& stream_;
  bool is_read_ = false;
};

}  // namespace

namespace {

constexpr const char* kHostHint =
    "--host takes a name or an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all";

// The library does not distinguish an unknown host from a port in use.
void check_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM, hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int fault = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (found) ::freeaddrinfo(found);
  if (fault == 0) return;
  throw heed::Error(ErrorCode::invalid_argument,
                    "cannot listen on " + host + ": " + ::gai_strerror(fault), kHostHint);
}

}  // namespace

class HttpServer::Listener : public httplib::Server {
 public:
  Listener(const HttpLimits& limits, HttpServer::Handler handler)
      : limits_(limits), handler_(std::move(handler)), connections_(limits.connections) {
    new_task_queue = [this] { return new ConnectionThreads(limits_.connections + kRefusers); };
    set_tcp_nodelay(true);  // streamed events are sent at once
    // The library's default, SO_REUSEPORT, would let two servers share a port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    const auto read_head = [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response, nullptr);
    };
    const auto read_all = [this](const httplib::Request& request, httplib::Response& response,
                                 const httplib::ContentReader& reader) {
      answer(request, response, &reader);
    };
    Get(".*", read_head), Options(".*", read_head), Delete(".*", read_head);
    Post(".*", read_all), Put(".*", read_all), Patch(".*", read_all), Delete(".*", read_all);
    set_exception_handler([](const httplib::Request&, httplib::Response& response,
                             const std::exception_ptr&) { response.status = 500; });
  }

  int bind(const std::string& host, int port) {
    check_host(host);
    errno = 0;
    const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
    if (bound < 0) {
      const bool is_elsewhere = errno == EADDRNOTAVAIL;
      const std::string why = errno != 0 ? ": " + std::generic_category().message(errno) : "";
      throw heed::Error(
          ErrorCode::invalid_argument,
          "cannot listen on " + host + " port " + std::to_string(port) + why,
          is_elsewhere ? kHostHint
                       : "the port may be in use: choose another --port, or 0 for any free port");
    }
    ::listen(svr_sock_, kBacklog);
    return bound;
  }

  void listen_until_stopped() {
    entered_ = true;
    if (!stopping_) listen_after_bind();
    left_ = true;
  }

  void stop_listening() {
    stopping_ = true;
    // The library ignores a stop() before listen().
    while (entered_ && !left_ && !is_running())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stop();
    connections_.close_waiting();
  }

  Connections& connections() { return connections_; }

 private:
  bool process_and_close_socket(socket_t socket) override {
    Connection connection{.socket = socket};
    if (stopping_ || !connections_.add(connection)) {
      refuse_connection(socket);
      return false;
    }
    ConnectionStream stream(connection, limits_);
    current = {&connection, &stream};
    while (!stopping_ && stream.wait_for_request() && process_one(stream)) {
    }
    current = {};
    if (stream.has_unread()) {
      connection.enter(Connection::Phase::waiting);  // may be closed for a new connection
      linger(socket);
    }
    connections_.remove(connection);
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
  }

  // Handles one request; returns whether another may follow.
  bool process_one(ConnectionStream& stream) {
    stream.begin_request();
    bool is_last = false;
    const auto prepare = [](httplib::Request& request) {
      request.ranges.clear();  // range requests are not supported
      // Brotli, as the library calls it, is much slower than gzip.
      const std::string encodings = request.get_header_value("Accept-Encoding");
      request.headers.erase("Accept-Encoding");
      if (encodings.find("gzip") != std::string::npos)
        request.set_header("Accept-Encoding", "gzip");
    };
    try {
      const bool is_fine = process_request(stream, stopping_, is_last, prepare);
      // Without a valid request the handler was not called, and the connection cannot be reused.
      return is_fine && !is_last && !stream.must_close() && stream.is_answered();
    } catch (...) {
      return false;  // for example out of memory: other connections continue
    }
  }

  void answer(const httplib::Request& request, httplib::Response& response,
              const httplib::ContentReader* reader) {
    Connection& connection = *current.connection;
    ConnectionStream& stream = *current.stream;
    stream.set_answered();
    LibraryRequest own(request, reader);
    HttpReply reply = handler_(own);
    connection.enter(Connection::Phase::answering);
    if (own.has_unread_body()) stream.leave_unread();
    if (stream.must_close() || reply.close || stopping_) {
      stream.close_after_reply();
      response.set_header("Connection", "close");
    }
    response.status = reply.status;
    for (const auto& [name, value] : reply.headers) response.set_header(name, value);
    if (!reply.stream) {
      const auto bytes = static_cast<int64_t>(reply.body.size());
      response.set_content(reply.body, reply.content_type);
      if (reply.done) reply.done(bytes);
      return;
    }
    auto bytes = std::make_shared<int64_t>(0);
    response.set_chunked_content_provider(
        reply.content_type,
        [run = std::move(reply.stream), bytes, &connection](size_t, httplib::DataSink& sink) {
          const auto write = [&](std::string_view text) {
            *bytes += static_cast<int64_t>(text.size());
            return sink.is_writable() && sink.write(text.data(), text.size());
          };
          try {
            run(write, [&] { return connection.is_client_gone(); });
          } catch (...) {
            return false;  // the stream is cut off
          }
          sink.done();
          return true;
        },
        [done = std::move(reply.done), bytes](bool) {
          if (done) done(*bytes);
        });
  }

  const HttpLimits limits_;
  const HttpServer::Handler handler_;
  Connections connections_;
  std::atomic<bool> stopping_{false}, entered_{false}, left_{false};
};

HttpServer::HttpServer(const HttpLimits& limits, Handler handler)
    : listener_(std::make_unique<Listener>(limits, std::move(handler))) {}
HttpServer::~HttpServer() = default;

int HttpServer::bind(const std::string& host, int port) { return listener_->bind(host, port); }
void HttpServer::listen() { listener_->listen_until_stopped(); }
void HttpServer::stop() { listener_->stop_listening(); }
bool HttpServer::wait_until_sent(double seconds) const {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(std::max(seconds, 0.0));
  while (listener_->connections().answering() > 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}
void HttpServer::abandon() { listener_->connections().close_all(); }
int HttpServer::connections() const { return listener_->connections().count(); }

}  // namespace heed::serve
