#include "heed/serve.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "heed/error.h"
#include "serve/http/http_server.h"
#include "serve/service.h"

namespace heed {
namespace {

// For closing connections after the last reply.
constexpr std::chrono::milliseconds kCloseTime{2000};
// Polling interval for a second signal.
constexpr double kPollSeconds = 0.1;
// For cancelled requests to return.
constexpr double kCancelSeconds = 10;

ServerOptions checked(ServerOptions options) {
  const auto is_empty = [](const std::string& key) { return key.empty(); };
  if (std::ranges::any_of(options.api_keys, is_empty)) {
    throw Error(ErrorCode::invalid_argument, "API keys must not be empty",
                "give at least one character");
  }
  for (ServerModel& model : options.models) {
    if (model.name.empty()) model.name = serve::default_model_name(model.folder);
    serve::check_model_name(model.name);
    const auto same = [&](const ServerModel& other) { return other.name == model.name; };
    if (std::ranges::count_if(options.models, same) > 1) {
      throw Error(ErrorCode::invalid_argument,
                  "model names must be unique, got '" + model.name + "' twice",
                  "name one of them: --model NAME=DIR");
    }
  }
  return options;
}

serve::HttpLimits http_limits(const ServerLimits& limits) {
  return {.connections = limits.connections,
          .head_seconds = limits.head_seconds,
          .body_seconds = limits.body_seconds,
          .idle_seconds = limits.idle_seconds};
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(ServerOptions options)
      : service_(checked(std::move(options))),
        http_(http_limits(service_.options().limits),
              [this](serve::HttpRequest& request) { return service_.answer(request); }) {
    for (const ServerModel& model : service_.options().models) {
      service_.models().load(model.name, model.folder);
    }
    service_.count_connections([this] { return http_.connections(); });
    port_ = http_.bind(service_.options().host, service_.options().port);
  }

  int port() const { return port_; }
  bool is_public() const { return !is_loopback(service_.options().host); }

  void run() {
    service_.log({{"event", "started"}, {"host", service_.options().host}, {"port", port_}});
    http_.listen();
    service_.log({{"event", "stopped"}});
  }

  // New connections are accepted while draining, so that they get 503 instead of a reset.
  void stop() {
    service_.close();
    service_.log({{"event", "stopping"}});
    const double drain_seconds = service_.options().limits.drain_seconds;
    if (!service_.gate().wait_until_empty(drain_seconds)) {
      service_.abort();
      service_.gate().wait_until_empty(kCancelSeconds);
    }
    http_.stop();
    // Replies may still be in transit to slow readers.
    for (double waited = 0; waited < drain_seconds && !service_.is_aborting();
         waited += kPollSeconds) {
      if (http_.wait_until_sent(kPollSeconds)) break;
    }
    const auto deadline = std::chrono::steady_clock::now() + kCloseTime;
    while (http_.connections() > 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    http_.abandon();
  }

  void stop_now() {
    service_.abort();
    stop();
  }

  void reload() {
    const std::vector<std::string> errors = service_.models().reload();
    service_.log({{"event", "reloaded"}, {"errors", errors}});
  }

 private:
  serve::Service service_;
  serve::HttpServer http_;
  int port_ = 0;
};

Server::Server(ServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Server::~Server() = default;

int Server::port() const { return impl_->port(); }
bool Server::is_public() const { return impl_->is_public(); }
void Server::run() { impl_->run(); }
void Server::stop() { impl_->stop(); }
void Server::stop_now() { impl_->stop_now(); }
void Server::reload() { impl_->reload(); }

}  // namespace heed
