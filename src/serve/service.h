// From an HTTP request to its reply: authorization, routing, admission, metrics and logging. The
// routes are in routes/*_routes.cc.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancellation.h"
#include "heed/serve.h"
#include "serve/http/gate.h"
#include "serve/http/http_error.h"
#include "serve/http/http_server.h"
#include "serve/metrics.h"
#include "serve/model_registry.h"
#include "serve/routes/fields.h"

namespace heed::serve {

class Service;

// A request as a route handler receives it.
struct Call {
  Service& service;
  HttpRequest& http;
  std::string id;
  std::vector<std::string> path_values{};  // values of {name} in the route's path
  Json body = Json::object();
  bool is_form = false;
  std::chrono::steady_clock::time_point deadline{};
  std::string model{};  // for the log

  // The client is gone, the deadline has passed, or the server is aborting.
  bool is_cancelled() const;
  std::function<bool()> cancelled() const {
    return [this] { return is_cancelled(); };
  }
};

struct Route {
  enum class Access { open, user, admin };
  // The JSON format of errors.
  enum class Form { openai, libretranslate };
  // The schema of a reply, for /openapi.json.
  struct Reply {
    Json schema{};  // of a stream: the data of one event
    std::string type = "application/json";
    int status = 200;
  };

  std::string method, path;  // "/v1/heed/models/{name}"
  std::string about;
  Access access = Access::user;
  Form form = Form::openai;
  bool works = false;                              // runs a model, so it needs a ticket of the gate
  bool takes_form = false;                         // also accepts url-encoded forms
  std::function<void(Fields& fields)> describe{};  // the fields of the body; empty: no body
  std::vector<Reply> replies{};                    // without errors: see `form`
  std::function<HttpReply(Call& call)> handle{};
};

class Service {
 public:
  explicit Service(ServerOptions options);

  // Never throws.
  HttpReply answer(HttpRequest& request);

  const ServerOptions& options() const { return options_; }
  const std::vector<Route>& routes() const { return routes_; }
  FieldLimits field_limits() const {
    return {.text_bytes = options_.limits.text_bytes,
            .texts = options_.limits.texts,
            .new_tokens = options_.limits.new_tokens,
            .answers = options_.limits.answers};
  }
  ModelRegistry& models() { return models_; }
  Metrics& metrics() { return metrics_; }
  // Counts the tokens of a source and of its translation for the metrics.
  void count_texts(const ServedModel& model, const std::string& source, const std::string& target);
  Gate& gate() { return gate_; }
  std::string metrics_text() const;

  // The model of that name; without a name, the only one with that ability. Throws HttpError 404.
  ServedModelPtr model_for(Call& call, const std::string& name, const std::string& ability) const;

  void log(const Json& line) const;

  // The error for the client, without folder names of this machine.
  HttpError error_of(const Error& error) const;
  // The error for a cancelled request: timeout or shutdown.
  HttpError cancelled_error(std::chrono::steady_clock::time_point deadline) const;

  // Cancels running requests.
  void abort() { is_aborting_ = true; }
  bool is_aborting() const { return is_aborting_; }
  void close() { is_closing_ = true, gate_.close(); }
  bool is_closing() const { return is_closing_; }
  void count_connections(std::function<int()> count) { connections_ = std::move(count); }

 private:
  // Null: no such route. Throws HttpError 405 with `form` and `allowed` set if only the method is wrong.
  const Route* find_route(const HttpRequest& request, std::vector<std::string>& values,
                          Route::Form& form, std::string& allowed) const;
  HttpReply handle(const Route& route, Call& call, std::shared_ptr<Gate::Ticket>& ticket);
  void read_body(const Route& route, Call& call);
  void authorize(const Route& route, const Call& call) const;
  void add_cors(const HttpRequest& request, HttpReply& reply) const;

  const ServerOptions options_;
  ModelRegistry models_;
  Metrics metrics_;
  Gate gate_;
  std::vector<Route> routes_;
  std::atomic<uint64_t> next_id_{1};
  std::atomic<bool> is_aborting_{false}, is_closing_{false};
  std::function<int()> connections_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

// Parses the body into a T, for which describe(Fields&, T&) exists.
template <class T>
T read_fields(const Call& call) {
  T value;
  const FieldLimits limits = call.service.field_limits();
  FieldReader reader(call.body, limits, call.is_form);
  describe(reader, value);
  reader.finish();
  return value;
}

template <class T>
std::function<void(Fields& fields)> described() {
  return [](Fields& fields) {
    T value;
    describe(fields, value);
  };
}

// Bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& json);
HttpReply json_reply(const Json& json, int status = 200);
Json error_json(const HttpError& error, Route::Form form);
HttpReply error_reply(const HttpError& error, Route::Form form);
// The schema of an error reply and its component name in /openapi.json.
Json error_schema(Route::Form form);
std::string error_name(Route::Form form);

// Compares in constant time.
bool is_same_secret(std::string_view given, std::string_view secret);

// Each adds its routes.
void add_status_routes(std::vector<Route>& routes);
void add_translate_routes(std::vector<Route>& routes);
void add_completion_routes(std::vector<Route>& routes);
void add_embedding_routes(std::vector<Route>& routes);
void add_task_routes(std::vector<Route>& routes);
void add_runs_routes(std::vector<Route>& routes);
void add_page_routes(std::vector<Route>& routes);

}  // namespace heed::serve
