// An HTTP server for models: OpenAI- and LibreTranslate-compatible routes and a web page.
//
//   heed::Server server({.models = {{.folder = "models/en-de"}}});
//   std::thread on_signal([&] { wait_for_sigterm(); server.stop(); });
//   server.run();                                   // http://127.0.0.1:8080/
//
// Routes: LibreTranslate's /translate and /languages; OpenAI's /v1/completions, /v1/embeddings and
// /v1/models; the rest is under /v1/heed. See /openapi.json and docs/serving.md. Errors: the
// constructor throws what loading a model throws, and invalid_argument when it cannot listen on the
// port.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct ServerModel {
  std::string name{};  // empty: the folder's name
  std::string folder{};
};

// Every resource has a limit, so that one client cannot block the others.
struct ServerLimits {
  int64_t body_bytes = 4 << 20;
  int64_t text_bytes = 100'000;        // per text
  int64_t texts = 256;                 // per request
  int64_t new_tokens = 4096;           // per answer
  int64_t answers = 16;                // per text; also the largest beam
  int64_t attend_tokens = 256;         // of attention maps, whose size is quadratic:
  int64_t attend_weights = 2'000'000;  // layers × heads × tokens²; longer texts are cut

  int connections = 512;                        // beyond: the longest idle one is closed
  int running = 64;                             // concurrent requests
  int waiting = 256;                            // queued requests; beyond: 429
  double wait_seconds = 30;                     // maximum time in the queue; then 503
  double run_seconds = 300;                     // maximum run time of a request
  double head_seconds = 10, body_seconds = 30;  // for receiving a request
  double idle_seconds = 60;                     // keep-alive timeout
  double drain_seconds = 30;                    // for running requests at shutdown
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any free port
  std::vector<ServerModel> models{};
  int threads = 0;                               // per model; 0: all CPUs
  uint64_t kv_memory_bytes = uint64_t{1} << 30;  // KV cache of each model that generates
  std::vector<std::string> api_keys{};           // empty: no key is required
  std::string admin_key{};    // empty: models cannot be loaded or unloaded over HTTP
  std::string cors_origin{};  // Access-Control-Allow-Origin; empty: same origin only
  // The parent folder of training runs, for the web page's Train tab; empty: none.
  std::string runs_folder{};
  ServerLimits limits{};
  // Receives one JSON line per request and event. Never contains texts of users.
  std::function<void(std::string_view line)> log{};
};

class Server {
 public:
  // Loads the models and binds the port.
  explicit Server(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // Whether other machines can connect.
  bool is_public() const;

  // Serves until stop().
  void run();

  // These may be called from any thread.
  // Finishes running requests, refuses new ones, and makes run() return.
  void stop();
  // Cancels running requests too.
  void stop_now();
  // Reloads all models. A model that fails to load is kept, and the error is logged.
  void reload();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heed
