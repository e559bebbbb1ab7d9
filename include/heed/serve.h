// A server: models behind HTTP, for programs, for curl, and for people with a browser.
//
//   heed::Server server({.models = {{.folder = "models/en-de"}}});
//   std::thread on_signal([&] { wait_for_sigterm(); server.stop(); });
//   server.run();                                   // http://127.0.0.1:8080/
//
// It speaks as LibreTranslate does (/translate, /languages) and as OpenAI's API does
// (/v1/completions, /v1/embeddings, /v1/models); the rest is under /v1/heed. /openapi.json lists
// everything, docs/serving.md explains it. Errors: the constructor throws what loading a model
// throws, and invalid_argument when the port cannot be had.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct ServerModel {
  std::string name{};  // empty: the folder's own
  std::string folder{};
};

// Everything has a limit, so that no client can take the server from the others.
struct ServerLimits {
  int64_t body_bytes = 4 << 20;
  int64_t text_bytes = 100'000;        // of each text
  int64_t texts = 256;                 // of one request
  int64_t new_tokens = 4096;           // of each answer
  int64_t answers = 16;                // to each text, and beams
  int64_t attend_tokens = 256;         // of attention maps, which grow with the square:
  int64_t attend_weights = 2'000'000;  // layers × heads × tokens²; what is longer is cut

  int connections = 512;                        // beyond them, the longest idle one makes room
  int running = 64;                             // requests that work at the same time
  int waiting = 256;                            // for that; beyond them 429
  double wait_seconds = 30;                     // that they wait at most; then 503
  double run_seconds = 300;                     // that they run at most
  double head_seconds = 10, body_seconds = 30;  // for a request to arrive
  double idle_seconds = 60;                     // between two requests of a connection
  double drain_seconds = 30;                    // for what runs when the server is stopped
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any that is free
  std::vector<ServerModel> models{};
  int threads = 0;                               // of each model; 0: every CPU
  uint64_t kv_memory_bytes = uint64_t{1} << 30;  // of each model that generates
  std::vector<std::string> api_keys{};           // empty: none is needed
  std::string admin_key{};                       // empty: nobody may load and unload models
  std::string cors_origin{};                     // whose pages may call; empty: only our own
  // Where trainings write, for the page to show; empty: none are shown.
  std::string runs_folder{};
  ServerLimits limits{};
  // Takes a line of JSON for every request, and for what happens otherwise. Never a user's text.
  std::function<void(std::string_view line)> log{};
};

class Server {
 public:
  // Loads the models and takes the port.
  explicit Server(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // Whether others than this machine can reach it.
  bool is_public() const;

  // Answers until stop().
  void run();

  // These may be called from any thread.
  // Finishes what runs, refuses the rest, and makes run() return.
  void stop();
  // Ends what runs too.
  void stop_now();
  // Loads all models anew. One that cannot be loaded stays as it was, and the log says why.
  void reload();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heed
