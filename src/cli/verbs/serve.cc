// heed serve: models behind HTTP.
#include "heed/serve.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/text_file.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "The models answer at http://HOST:PORT: /translate as LibreTranslate does, /v1/completions "
    "and\n"
    "/v1/embeddings as OpenAI's API does, the rest under /v1/heed; /openapi.json lists "
    "everything.\n"
    "A line of JSON for each request goes to standard error, without anybody's text.\n"
    "\n"
    "TERM or INT finishes what runs and ends; a second one ends at once. HUP loads all models "
    "anew.\n"
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
    throw Error(ErrorCode::invalid_argument, file + " has no keys",
                "one a line; or leave " + flag + " out to need none");
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

// From a file, where other users of the machine do not see it among the processes.
std::string admin_key_of(const ServeFlags& flags) {
  if (flags.admin_key_file.empty()) return flags.admin_key;
  if (!flags.admin_key.empty()) {
    throw Error(ErrorCode::invalid_argument, "there are two admin keys",
                "give either --admin-key or --admin-key-file");
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
    throw Error(ErrorCode::invalid_argument, "serve needs a model",
                "for example: heed serve --model models/en-de");
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
    throw Error(ErrorCode::not_found, "--runs: there is no folder " + flags.runs,
                "give the folder that trainings write to: heed train … --out runs/first");
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

sigset_t our_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&set, signal);
  return set;
}

// Signals come to this thread alone. SIGUSR1 is ours: the server has ended.
void wait_for_signals(Server& server) {
  const sigset_t signals = our_signals();
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
  // Before any thread is made: they inherit it.
  const sigset_t signals = our_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Server server(options_of(flags));
  const bool is_v6 = flags.host.find(':') != std::string::npos;
  out.write("listening on http://" + (is_v6 ? "[" + flags.host + "]" : flags.host) + ":" +
            std::to_string(server.port()) + "/\n");
  out.flush();
  if (server.is_public()) {
    std::fprintf(stderr, "warning: other machines can reach this server%s\n",
                 flags.api_keys.empty() && flags.api_key_file.empty()
                     ? ", and no key is needed: see --api-key-file"
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
  const Command serve = program.add_verb("serve", "Answer over HTTP");
  const auto flags = std::make_shared<ServeFlags>();
  add_texts(serve, "--model", flags->models, "[NAME=]DIR", "a model; may be given again");
  add_text(serve, "--host", flags->host, "ADDRESS", "where to listen; 0.0.0.0 is everywhere");
  add_number(serve, "--port", flags->port, {.min = 0, .max = 65535}, "0 takes any that is free");
  add_texts(serve, "--api-key", flags->api_keys, "KEY", "needed by who asks; may be given again");
  add_text(serve, "--api-key-file", flags->api_key_file, "FILE", "keys, one a line");
  add_text(serve, "--admin-key", flags->admin_key, "KEY", "needed to load and unload models");
  add_text(serve, "--admin-key-file", flags->admin_key_file, "FILE", "that key, in its first line");
  add_text(serve, "--cors", flags->cors, "ORIGIN", "whose pages may call too, or *");
  add_text(serve, "--runs", flags->runs, "DIR", "trainings in there are shown on the page");
  add_number(serve, "--kv-memory-mb", flags->kv_memory_mb, {.min = 1, .max = 1e6},
             "memory of each model for keys and values");
  add_number(serve, "--max-running", flags->max_running, {.min = 1}, "requests that work at once");
  add_number(serve, "--max-waiting", flags->max_waiting, {.min = 0},
             "requests that wait for that; the next gets 429");
  add_number(serve, "--max-connections", flags->max_connections, {.min = 1, .max = 10000},
             "open connections");
  add_number(serve, "--max-body-mb", flags->max_body_mb, {.min = 0.001, .max = 1000},
             "of one request");
  add_number(serve, "--max-text-bytes", flags->max_text_bytes, {.min = 1}, "of one text");
  add_number(serve, "--max-new-tokens", flags->max_new_tokens, {.min = 1}, "of one answer");
  add_number(serve, "--wait-seconds", flags->wait_seconds, {.min = 0},
             "that requests wait at most");
  add_number(serve, "--run-seconds", flags->run_seconds, {.min = 0.1}, "that they run at most");
  add_number(serve, "--idle-seconds", flags->idle_seconds, {.min = 0.1},
             "that connections may be idle");
  add_number(serve, "--drain-seconds", flags->drain_seconds, {.min = 0},
             "for what runs when the server is stopped");
  add_switch(serve, "--quiet", flags->quiet, "no log");
  add_common_flags(serve, *flags);
  serve.footer(kHelp);
  serve.on_run([flags](Output& out) { run_serve(*flags, out); });
}

}  // namespace heed::cli
