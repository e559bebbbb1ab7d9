#include "serve/service.h"

#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/clock.h"
#include "base/process_memory.h"
#include "base/text/json_text.h"

namespace heed::serve {
namespace {

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char date[32], text[48];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%03dZ", date, static_cast<int>(ms));
  return text;
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const size_t end = std::min(path.find('/'), path.size());
    parts.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return parts;
}

bool matches(std::string_view pattern, std::string_view path, std::vector<std::string>& values) {
  if (path.empty() || path.front() != '/') return false;
  const auto expected = parts_of(pattern), given = parts_of(path);
  if (expected.size() != given.size()) return false;
  values.clear();
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].starts_with('{')) {
      values.emplace_back(given[i]);
    } else if (expected[i] != given[i]) {
      return false;
    }
  }
  return true;
}

const char* openai_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

std::string bearer(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";  // schemes are case-insensitive
  const std::string value = request.header("Authorization");
  const auto is_same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  };
  if (value.size() >= kBearer.size() && std::equal(kBearer.begin(), kBearer.end(), value.begin(),
                                                   [&](char b, char a) { return is_same(a, b); })) {
    return value.substr(kBearer.size());
  }
  return request.header("X-API-Key");
}

}  // namespace

bool Call::is_cancelled() const {
  return service.is_aborting() || Clock::now() > deadline || http.is_client_gone();
}

std::string dump(const Json& json) { return json_text(json); }

HttpReply json_reply(const Json& json, int status) {
  return {.status = status, .body = dump(json)};
}

Json error_json(const HttpError& error, Route::Form form) {
  if (form == Route::Form::libretranslate) return {{"error", error.what()}};
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"error",
           {{"message", error.what()},
            {"type", openai_type(error.status())},
            {"param", or_null(error.field())},
            {"code", or_null(error.code())}}}};
}

HttpReply error_reply(const HttpError& error, Route::Form form) {
  HttpReply reply = json_reply(error_json(error, form), error.status());
  if (error.retry_seconds() > 0) {
    reply.headers.emplace_back("Retry-After", std::to_string(error.retry_seconds()));
  }
  if (error.status() == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

Json error_schema(Route::Form form) {
  const Json message = schema::text("error message");
  if (form == Route::Form::libretranslate) return schema::object({{"error", message}});
  return schema::object(
      {{"error",
        schema::object({{"message", message},
                        {"type", schema::text("OpenAI's error type")},
                        {"param", schema::or_null(schema::text("name of the invalid field"))},
                        {"code", schema::or_null(schema::text("machine-readable code"))}})}});
}

std::string error_name(Route::Form form) {
  return form == Route::Form::libretranslate ? "LibreTranslateError" : "OpenAiError";
}

bool is_same_secret(std::string_view given, std::string_view secret) {
  // Constant time: every byte of the secret is compared.
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i) {
    const auto a = static_cast<unsigned char>(given.empty() ? 0 : given[i % given.size()]);
    difference |= static_cast<unsigned>(a ^ static_cast<unsigned char>(secret[i]));
  }
  return difference == 0;
}

Service::Service(ServerOptions options)
    : options_(std::move(options)),
      models_({.threads = options_.threads, .kv_memory_bytes = options_.kv_memory_bytes}),
      gate_({.running = options_.limits.running,
             .waiting = options_.limits.waiting,
             .wait_seconds = options_.limits.wait_seconds}) {
  add_status_routes(routes_);
  add_translate_routes(routes_);
  add_completion_routes(routes_);
  add_embedding_routes(routes_);
  add_task_routes(routes_);
  add_runs_routes(routes_);
  add_page_routes(routes_);
}

void Service::log(const Json& line) const {
  if (!options_.log) return;
  Json json{{"time", now_text()}};
  json.update(line);
  options_.log(dump(json));
}

const Route* Service::find_route(const HttpRequest& request, std::vector<std::string>& values,
                                 Route::Form& form, std::string& allowed) const {
  const std::string& method = request.method == "HEAD" ? "GET" : request.method;
  for (const Route& route : routes_) {
    if (!matches(route.path, request.path, values)) continue;
    form = route.form;
    if (route.method == method) return &route;
    allowed += (allowed.empty() ? "" : ", ") + route.method;
  }
  if (!allowed.empty()) {
    throw HttpError(405, "method " + request.method + " is not allowed for " + request.path,
                    "method_not_allowed");
  }
  return nullptr;
}

void Service::authorize(const Route& route, const Call& call) const {
  if (route.access == Route::Access::open) return;
  const std::string given = bearer(call.http);
  if (route.access == Route::Access::admin) {
    if (!options_.admin_key.empty() && is_same_secret(given, options_.admin_key)) return;
    throw HttpError(403,
                    options_.admin_key.empty()
                        ? "loading and unloading models requires a server with --admin-key"
                        : "the admin key is missing or wrong: Authorization: Bearer KEY",
                    "admin_key_required");
  }
  if (options_.api_keys.empty()) return;
  bool is_fine = !options_.admin_key.empty() && is_same_secret(given, options_.admin_key);
  // LibreTranslate clients send the key in the body.
  std::string in_body;
  if (route.form == Route::Form::libretranslate && call.body.contains("api_key") &&
      call.body["api_key"].is_string()) {
    in_body = call.body["api_key"].get<std::string>();
  }
  for (const std::string& key : options_.api_keys) {
    // Both are always compared, so that the time does not reveal which key is close.
    const bool in_head = is_same_secret(given, key), as_field = is_same_secret(in_body, key);
    is_fine = is_fine || in_head || as_field;
  }
  if (is_fine) return;
  throw HttpError(route.form == Route::Form::libretranslate ? 403 : 401,
                  given.empty() && in_body.empty()
                      ? "an API key is missing: Authorization: Bearer KEY"
                      : "invalid API key",
                  "invalid_api_key");
}

void Service::read_body(const Route& route, Call& call) {
  if (!route.describe) return;
  const std::string type = call.http.header("Content-Type");
  const bool is_form =
      type.starts_with("application/x-www-form-urlencoded") || call.http.is_multipart();
  if (is_form ? !route.takes_form : !(type.empty() || type.starts_with("application/json"))) {
    throw HttpError(
        415,
        "the body's Content-Type must be application/json" +
            std::string(route.takes_form ? " or application/x-www-form-urlencoded" : ""),
        "unsupported_media_type");
  }
  const std::string body = call.http.read_body(options_.limits.body_bytes);
  call.is_form = is_form;
  call.body = is_form ? parse_form(body) : parse_body(body, field_limits().depth);
}

HttpReply Service::handle(const Route& route, Call& call, std::shared_ptr<Gate::Ticket>& ticket) {
  // A key in the headers is checked before the body is read.
  if (route.form != Route::Form::libretranslate) authorize(route, call);
  read_body(route, call);
  if (route.form == Route::Form::libretranslate) authorize(route, call);
  if (route.works) {
    ticket =
        std::make_shared<Gate::Ticket>(gate_.enter([&] { return call.http.is_client_gone(); }));
  }
  call.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(options_.limits.run_seconds));
  return route.handle(call);
}

HttpReply Service::answer(HttpRequest& request) {
  const auto start = Clock::now();
  Call call{.service = *this, .http = request, .id = "req-" + std::to_string(next_id_++)};
  const Route* route = nullptr;
  std::shared_ptr<Gate::Ticket> ticket;
  HttpReply reply;
  Route::Form form = Route::Form::openai;
  std::string allowed;
  try {
    if (!request.malformed.empty()) {
      throw HttpError(400, request.malformed, "invalid_request");
    }
    if (request.method == "OPTIONS" && !options_.cors_origin.empty()) {
      reply.status = 204;
    } else {
      route = find_route(request, call.path_values, form, allowed);
      if (route == nullptr) {
        throw HttpError(404, "no such route; see /openapi.json", "not_found");
      }
      reply = handle(*route, call, ticket);
    }
  } catch (const HttpError& error) {
    reply = error_reply(error, form);
    if (error.status() == 405) reply.headers.emplace_back("Allow", allowed);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled) {
      // Admins may see folder names.
      const bool is_admin = route != nullptr && route->access == Route::Access::admin;
      reply = error_reply(is_admin ? HttpError::from(error) : error_of(error), form);
    } else {
      const bool gone = request.is_client_gone();
      reply = error_reply(
          gone ? HttpError(kClientGone, error.what()) : cancelled_error(call.deadline), form);
    }
    if (error.code() == ErrorCode::internal) {
      log({{"event", "internal_error"}, {"id", call.id}, {"message", error.what()}});
    }
  } catch (const std::bad_alloc&) {
    reply = error_reply(HttpError::later(503, "out of memory", 5), form);
    log({{"event", "out_of_memory"}, {"id", call.id}});
  } catch (const std::exception& error) {
    reply = error_reply(HttpError(500, "internal error; see the server log", "internal"), form);
    log({{"event", "internal_error"}, {"id", call.id}, {"message", error.what()}});
  }
  reply.headers.emplace_back("X-Request-Id", call.id);
  reply.close = reply.close || is_closing_;
  add_cors(request, reply);
  // The pattern of the route is logged, because the requested path may contain anything.
  const std::string path = route != nullptr ? route->path : "other";
  reply.done = [this, start, path, ticket, inner = std::move(reply.done), status = reply.status,
                id = call.id, method = request.method, remote = request.remote,
                model = call.model](int64_t bytes) {
    if (inner) inner(bytes);
    const double seconds = seconds_since(start);
    metrics_.count_request({.route = path, .status = status, .seconds = seconds});
    Json line{{"event", "request"}, {"id", id},         {"method", method},
              {"route", path},      {"status", status}, {"ms", std::round(seconds * 1e6) / 1000},
              {"bytes", bytes},     {"remote", remote}};
    if (!model.empty()) line["model"] = model;
    log(line);
  };
  return reply;
}

void Service::count_texts(const ServedModel& model, const std::string& source,
                          const std::string& target) {
  const Tokenizer& tokenizer = model.model().tokenizer();
  const auto count = [&](const std::string& text, TextSide side) {
    return text.empty() ? 0 : std::ssize(tokenizer.encode_ids(text, {.side = side}));
  };
  metrics_.count_tokens(count(source, TextSide::source), count(target, TextSide::target));
}

HttpError Service::error_of(const Error& error) const {
  const auto hide = [&](std::string text) {
    for (const ServedModelPtr& model : models_.all()) {
      const std::string& folder = model->folder();
      if (folder.find('/') == std::string::npos) continue;  // cannot be told from other words
      for (size_t at = 0; (at = text.find(folder, at)) != std::string::npos;
           at += model->name().size()) {
        text.replace(at, folder.size(), model->name());
      }
    }
    return text;
  };
  return HttpError::from(Error(error.code(), hide(error.what()), hide(error.hint())));
}

HttpError Service::cancelled_error(Clock::time_point deadline) const {
  constexpr int kRetrySeconds = 5;
  if (is_aborting_ || Clock::now() < deadline) {
    return HttpError::later(503, "the server is shutting down", kRetrySeconds);
  }
  const std::string seconds = Json(options_.limits.run_seconds).dump();
  return HttpError::later(503, "the request exceeded the time limit of " + seconds + " s",
                          kRetrySeconds);
}

void Service::add_cors(const HttpRequest& request, HttpReply& reply) const {
  if (options_.cors_origin.empty()) return;
  constexpr const char* kSecondsToRemember = "86400";
  reply.headers.emplace_back("Access-Control-Allow-Origin", options_.cors_origin);
  reply.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
  // Clients send additional headers (OpenAI's a dozen), so all requested names are allowed.
  std::string headers = request.header("Access-Control-Request-Headers");
  const auto is_fine = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == ',' ||
           c == ' ';
  };
  if (headers.empty() || !std::ranges::all_of(headers, is_fine)) {
    headers = "Authorization, Content-Type, X-API-Key";
  }
  reply.headers.emplace_back("Access-Control-Allow-Headers", headers);
  reply.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  if (request.method == "OPTIONS") {
    reply.headers.emplace_back("Access-Control-Max-Age", kSecondsToRemember);
  }
  reply.headers.emplace_back("Vary", "Origin, Access-Control-Request-Headers");
}

ServedModelPtr Service::model_for(Call& call, const std::string& name,
                                  const std::string& ability) const {
  ServedModelPtr found;
  if (!name.empty()) {
    found = models_.find(name);
    if (!found) {
      std::string names;
      for (const ServedModelPtr& model : models_.all()) {
        names += (names.empty() ? "" : ", ") + model->name();
      }
      throw HttpError(404,
                      "no model '" + name.substr(0, 100) +
                          "'; loaded models: " + (names.empty() ? "none" : names),
                      "model_not_found", "model");
    }
  } else {
    int count = 0;
    for (const ServedModelPtr& model : models_.all()) {
      const std::vector<std::string> abilities = model->abilities();
      if (std::find(abilities.begin(), abilities.end(), ability) == abilities.end()) continue;
      found = model;
      ++count;
    }
    if (count != 1) {
      throw HttpError(count == 0 ? 404 : 400,
                      count == 0 ? "no loaded model can " + ability
                                 : "several models can " + ability + ": 'model' must name one",
                      count == 0 ? "model_not_found" : "missing_field", "model");
    }
  }
  call.model = found->name();
  return found;
}

std::string Service::metrics_text() const {
  using Values = std::vector<std::pair<std::string, double>>;
  std::string text = metrics_.text();
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    text += metric_text(name, "gauge", help, {{"", value}});
  };
  gauge("heed_requests_running", "Requests currently running.", gate_.running());
  gauge("heed_requests_waiting", "Requests waiting in the queue.", gate_.waiting());
  gauge("heed_connections", "Open connections.", connections_ ? connections_() : 0);
  gauge("heed_uptime_seconds", "Seconds since the server started.", seconds_since(started_));
  gauge("process_resident_memory_bytes", "Resident memory in bytes.",
        static_cast<double>(current_rss_bytes()));
  Values loaded;
  std::vector<std::pair<std::string, EngineStatistics>> engines;
  for (const ServedModelPtr& model : models_.all()) {
    loaded.emplace_back(label("model", model->name()), 1);
    if (const auto s = model->statistics()) engines.emplace_back(label("model", model->name()), *s);
  }
  text += metric_text("heed_model_loaded", "gauge", "Models currently loaded.", loaded);
  const auto of_engines = [&](std::string_view name, std::string_view type, std::string_view help,
                              const std::function<double(const EngineStatistics&)>& value) {
    Values values;
    for (const auto& [labels, s] : engines) values.emplace_back(labels, value(s));
    text += metric_text(name, type, help, values);
  };
  const auto as_double = [](int64_t value) { return static_cast<double>(value); };
  of_engines("heed_engine_running", "gauge", "Requests currently running.",
             [&](const auto& s) { return as_double(s.running); });
  of_engines("heed_engine_waiting", "gauge", "Requests waiting for KV cache blocks or a free slot.",
             [&](const auto& s) { return as_double(s.waiting); });
  of_engines("heed_engine_runs_total", "counter", "Scheduler steps (runs of the decoder).",
             [&](const auto& s) { return as_double(s.ticks); });
  of_engines("heed_engine_rows_total", "counter",
             "Rows of all scheduler steps; divided by the steps, the mean batch size.",
             [&](const auto& s) { return as_double(s.rows); });
  of_engines("heed_engine_new_tokens_total", "counter", "Tokens generated.",
             [&](const auto& s) { return as_double(s.new_tokens); });
  of_engines("heed_engine_preemptions_total", "counter",
             "Requests preempted to free KV cache blocks.",
             [&](const auto& s) { return as_double(s.preemptions); });
  of_engines("heed_kv_blocks", "gauge", "KV cache blocks.",
             [&](const auto& s) { return as_double(s.kv_blocks); });
  of_engines("heed_kv_blocks_used", "gauge", "KV cache blocks in use.",
             [&](const auto& s) { return as_double(s.kv_blocks_used); });
  return text;
}

}  // namespace heed::serve
