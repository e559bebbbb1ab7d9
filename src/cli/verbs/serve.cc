// heed serve: the HTTP server.
#include "heed/serve.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/files/text_file.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "Routes: /translate as in LibreTranslate; /v1/completions and /v1/embeddings as in OpenAI's\n"
    "API; the rest under /v1/heed. /openapi.json lists all. One JSON line per request is logged\n"
    "to standard error, without texts of users.\n"
    "\n"
    "SIGTERM or SIGINT finishes running requests and exits; a second one exits at once. SIGHUP\n"
    "reloads all models.\n"
    "\n"
    "Examples:\n"
    "  heed serve --model models/en-de --model gpt=models/shakespeare\n"
    "  curl http://127.0.0.1:8080/translate -d q=Hello -d source=en -d target=de\n"
    "  heed serve --model DIR --host 0.0.0.0 --api-key-file keys.txt";

struct ServeFlags : CommonFlags {
  std::vector<std::string> models, api_keys;
  std::string host = "127.0.0.1", api_key_file, admin_key, admin_key_file, cors, runs;
  int port = 8080;
  double kv_memory_mb = 1024;
  int max_running = 64, max_waiting = 256, max_connections = 512;
  double max_body_mb = 4;
  int max_text_bytes = 100'000, max_new_tokens = 4096;
  double wait_seconds = 30, run_seconds = 300, idle_seconds = 60, drain_seconds = 30;
  bool quiet = false;
};

// NAME=DIR, or DIR.
ServerModel model_of(const std::string& value) {
  const size_t equals = value.find('=');
  const bool has_name =
      equals != std::string::npos && value.substr(0, equals).find('/') == std::string::npos;
  if (!has_name) return {.folder = value};
  return {.name = value.substr(0, equals), .folder = value.substr(equals + 1)};
}

std::vector<std::string> keys_in(const std::string& file, const std::string& flag) {
  std::vector<std::string> keys;
  LineReader reader(file);
  for (std::string line; reader.next(line);) {
    if (!line.empty()) keys.push_back(line);
  }
  if (keys.empty()) {
    throw Error(ErrorCode::invalid_argument, file + " must contain at least one key",
                "one key per line; without " + flag + " no key is required");
  }
  return keys;
}

std::vector<std::string> keys_of(const ServeFlags& flags) {
  std::vector<std::string> keys = flags.api_keys;
  if (flags.api_key_file.empty()) return keys;
  for (std::string& key : keys_in(flags.api_key_file, "--api-key-file")) {
    keys.push_back(std::move(key));
  }
  return keys;
}

// A file hides the key from the process list.
std::string admin_key_of(const ServeFlags& flags) {
  if (flags.admin_key_file.empty()) return flags.admin_key;
  if (!flags.admin_key.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "--admin-key and --admin-key-file must not be combined", "give one of them");
  }
  return keys_in(flags.admin_key_file, "--admin-key-file").front();
}

void write_log(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

ServerOptions options_of(const ServeFlags& flags) {
  const std::string admin_key = admin_key_of(flags);
  if (flags.models.empty() && admin_key.empty() && flags.runs.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed serve: --model is missing",
                "heed serve --model models/en-de");
  }
  ServerOptions options{.host = flags.host,
                        .port = flags.port,
                        .threads = flags.threads,
                        .kv_memory_bytes = static_cast<uint64_t>(flags.kv_memory_mb * 1e6),
                        .api_keys = keys_of(flags),
                        .admin_key = admin_key,
                        .cors_origin = flags.cors,
                        .runs_folder = flags.runs};
  if (!flags.runs.empty() && !std::filesystem::is_directory(flags.runs)) {
    throw Error(ErrorCode::not_found, "--runs must be a folder, got " + flags.runs,
                "the parent folder of heed train … --out runs/first");
  }
  for (const std::string& model : flags.models) options.models.push_back(model_of(model));
  ServerLimits& limits = options.limits;
  limits.body_bytes = static_cast<int64_t>(flags.max_body_mb * 1e6);
  limits.text_bytes = flags.max_text_bytes, limits.new_tokens = flags.max_new_tokens;
  limits.running = flags.max_running, limits.waiting = flags.max_waiting;
  limits.connections = flags.max_connections;
  limits.wait_seconds = flags.wait_seconds, limits.run_seconds = flags.run_seconds;
  limits.idle_seconds = flags.idle_seconds, limits.drain_seconds = flags.drain_seconds;
  if (!flags.quiet) options.log = write_log;
  return options;
}

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&set, signal);
  return set;
}

// All signals are delivered to this thread. SIGUSR1 is sent by run_serve() when the server has ended.
void wait_for_signals(Server& server) {
  const sigset_t signals = handled_signals();
  std::thread stopping;
  for (int signal = 0; sigwait(&signals, &signal) == 0 && signal != SIGUSR1;) {
    if (signal == SIGHUP) {
      server.reload();
    } else if (!stopping.joinable()) {
      stopping = std::thread([&] { server.stop(); });
    } else {
      server.stop_now();
    }
  }
  if (stopping.joinable()) stopping.join();
}

void run_serve(const ServeFlags& flags, Output& out) {
  // Before any thread is created, because threads inherit the mask.
  const sigset_t signals = handled_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Server server(options_of(flags));
  const bool is_v6 = flags.host.find(':') != std::string::npos;
  out.write("listening on http://" + (is_v6 ? "[" + flags.host + "]" : flags.host) + ":" +
            std::to_string(server.port()) + "/\n");
  out.flush();
  if (server.is_public()) {
    std::fprintf(stderr, "warning: the server is reachable from other machines%s\n",
                 flags.api_keys.empty() && flags.api_key_file.empty()
                     ? " without an API key: see --api-key-file"
                     : "");
  }
  std::exception_ptr failure;
  std::thread running([&] {
    try {
      server.run();
    } catch (...) {
      failure = std::current_exception();
    }
    ::kill(::getpid(), SIGUSR1);
  });
  wait_for_signals(server);
  running.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void add_serve(Program& program) {
  const Command serve = program.add_verb("serve", "Serve models over HTTP");
  const auto flags = std::make_shared<ServeFlags>();
  add_texts(serve, "--model", flags->models, "[NAME=]DIR", "model folder; may be repeated");
  add_text(serve, "--host", flags->host, "ADDRESS",
           "address to listen on; 0.0.0.0: all interfaces");
  add_number(serve, "--port", flags->port, {.min = 0, .max = 65535},
             "port to listen on; 0: any free port");
  add_texts(serve, "--api-key", flags->api_keys, "KEY",
            "API key that clients must send; may be repeated");
  add_text(serve, "--api-key-file", flags->api_key_file, "FILE",
           "file with API keys, one per line");
  add_text(serve, "--admin-key", flags->admin_key, "KEY", "key for loading and unloading models");
  add_text(serve, "--admin-key-file", flags->admin_key_file, "FILE",
           "file with the admin key in its first line");
  add_text(serve, "--cors", flags->cors, "ORIGIN", "allowed origin of cross-origin requests, or *");
  add_text(serve, "--runs", flags->runs, "DIR", "folder of training runs to show on the web page");
  add_number(serve, "--kv-memory-mb", flags->kv_memory_mb, {.min = 1, .max = 1e6},
             "KV cache per model in megabytes");
  add_number(serve, "--max-running", flags->max_running, {.min = 1},
             "maximum number of running requests");
  add_number(serve, "--max-waiting", flags->max_waiting, {.min = 0},
             "maximum number of queued requests; beyond: 429");
  add_number(serve, "--max-connections", flags->max_connections, {.min = 1, .max = 10000},
             "maximum number of open connections");
  add_number(serve, "--max-body-mb", flags->max_body_mb, {.min = 0.001, .max = 1000},
             "maximum size of a request body in megabytes");
  add_number(serve, "--max-text-bytes", flags->max_text_bytes, {.min = 1},
             "maximum size of a text in bytes");
  add_number(serve, "--max-new-tokens", flags->max_new_tokens, {.min = 1},
             "maximum number of new tokens per answer");
  add_number(serve, "--wait-seconds", flags->wait_seconds, {.min = 0}, "maximum time in the queue");
  add_number(serve, "--run-seconds", flags->run_seconds, {.min = 0.1},
             "maximum run time of a request");
  add_number(serve, "--idle-seconds", flags->idle_seconds, {.min = 0.1},
             "keep-alive timeout of idle connections");
  add_number(serve, "--drain-seconds", flags->drain_seconds, {.min = 0},
             "time for running requests at shutdown");
  add_switch(serve, "--quiet", flags->quiet, "disable the request log");
  add_common_flags(serve, *flags);
  serve.footer(kHelp);
  serve.on_run([flags](Output& out) { run_serve(*flags, out); });
}

}  // namespace heed::cli
