// Many clients for a minute: no errors, nearly the speed of the engine alone, and no growth.
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/process_memory.h"
#include "heed/engine.h"
#include "model/network.h"
#include "model/presets.h"
#include "serve/serve_testing.h"

namespace heed::serve {
namespace {

constexpr int kClients = 64;
constexpr int kNewTokens = 24;
constexpr uint64_t kKvBytes = 256 << 20;

// Of each model: there are three of them, and 64 clients.
int threads() {
  const char* value = std::getenv("HEED_LOAD_THREADS");
  return value != nullptr ? std::atoi(value) : 1;
}

// What this process has computed, clients and all.
double cpu_seconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

struct Speed {
  double per_second = 0, per_cpu_second = 0;  // tokens
};

double resident_mb() { return static_cast<double>(current_rss_bytes()) / 1e6; }

// What is allocated now, in all of malloc's arenas; threads' own caches count as allocated.
double allocated_mb() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / 1e6;
}

// Large enough that the model, and not HTTP, is the work.
class LoadTest : public ServeTest {
 protected:
  std::string make_large() const {
    const std::string folder = make_model("gpt");  // for its vocabulary
    ModelConfig config = preset("bert-tiny");
    config.vocabulary = 40, config.width = 384, config.ffn = 1536, config.heads = 6;
    config.max_positions = 64;
    config.head = Head::language_model, config.family = Family::decoder_only;
    config.token_types = 0, config.pooler = false, config.embedding_norm = false;
    config.encoder_layers = 0, config.decoder_layers = 6;
    config.decoder_start_id = 0;  // and no end: every text has all its tokens
    Network(config, /*seed=*/3).save(folder);
    return folder;
  }

  static double test_seconds() {
    const char* value = std::getenv("HEED_LOAD_SECONDS");
    return value != nullptr ? std::atof(value) : 60;
  }

  // Tokens a second of the engine without a server, with as many running requests.
  static Speed offline_speed(const std::string& folder, double seconds) {
    Engine engine(Model::load(folder), {.threads = threads(), .kv_memory_bytes = kKvBytes});
    SearchOptions search{.max_new_tokens = kNewTokens, .sample = true};
    const auto start = Clock::now();
    const double cpu = cpu_seconds();
    double tokens = 0;
    while (seconds_since(start) < seconds) {
      std::vector<Request> requests(kClients);
      for (size_t i = 0; i < requests.size(); ++i) {
        requests[i].text = "the cat sat on the mat", requests[i].search = search;
        requests[i].stream = i;
      }
      engine.run(std::move(requests), [&](size_t, Result&& result) {
        tokens += static_cast<double>(result.best().new_tokens);
      });
    }
    return {tokens / seconds_since(start), tokens / (cpu_seconds() - cpu)};
  }
};

TEST_F(LoadTest, SixtyFourClients) {
  const std::string folder = make_large();
  const double seconds = test_seconds();
  const Speed offline = offline_speed(folder, std::min(seconds / 3, 20.0));

  ServerOptions options;
  options.models = {{.name = "large", .folder = folder}};
  options.threads = threads(), options.kv_memory_bytes = kKvBytes;
  options.log = [](std::string_view) {};
  start({"en-de", "mlm"}, std::move(options));
  std::atomic<bool> is_over{false};
  std::atomic<int64_t> tokens{0}, errors{0};
  std::mutex mutex;
  std::vector<double> latencies;
  std::vector<std::thread> clients;
  const auto start = Clock::now();
  const double cpu = cpu_seconds();
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      const Client own = client();
      std::vector<double> mine;
      for (int i = 0; !is_over; ++i) {
        const auto begun = Clock::now();
        Received answer;
        // One in eight asks for something small in between.
        if ((i + c) % 8 == 0) {
          answer = own.post("/translate", {{"q", "the cat"}, {"target", "de"}, {"beam", 1}});
        } else if ((i + c) % 8 == 4) {
          answer = own.post("/v1/embeddings", {{"model", "mlm"}, {"input", "the cat"}});
        } else {
          const bool streams = (i + c) % 2 == 0;
          answer = own.post("/v1/completions", {{"model", "large"},
                                                {"prompt", "the cat sat on the mat"},
                                                {"max_tokens", kNewTokens},
                                                {"stream", streams},
                                                {"seed", i}});
          if (answer.status == 200) tokens += kNewTokens;
        }
        if (answer.status != 200) ++errors;
        mine.push_back(seconds_since(begun));
      }
      const std::lock_guard lock(mutex);
      latencies.insert(latencies.end(), mine.begin(), mine.end());
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 3));
  const double warm = resident_mb();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds * 2 / 3));
  const double end = resident_mb();
  is_over = true;
  for (std::thread& thread : clients) thread.join();
  const auto written = static_cast<double>(tokens);
  const Speed online{written / seconds_since(start), written / (cpu_seconds() - cpu)};
  std::ranges::sort(latencies);
  ASSERT_FALSE(latencies.empty());
  const double p50 = latencies[latencies.size() / 2], p99 = latencies[latencies.size() * 99 / 100];
  std::printf(
      "%zu requests, p50 %.3f s, p99 %.3f s; %.0f tokens/s, offline %.0f (%.2f); %.0f a CPU "
      "second, "
      "offline %.0f (%.2f); memory %.1f MB after warm-up, %.1f MB at the end\n",
      latencies.size(), p50, p99, online.per_second, offline.per_second,
      online.per_second / offline.per_second, online.per_cpu_second, offline.per_cpu_second,
      online.per_cpu_second / offline.per_cpu_second, warm, end);
  EXPECT_EQ(errors, 0);
  EXPECT_LT(end, warm * 1.1);
  EXPECT_GT(online.per_second, 0.9 * offline.per_second);
}

// As many small requests as a minute holds, of every kind: whatever each left behind would show.
// After the first half everything is warm; then what is allocated stays as it is. The resident
// memory may still rise a little, for malloc finds room for threads that meet in new ways.
TEST_F(LoadTest, LeavesNothingBehind) {
  const double seconds = test_seconds();
  ServerOptions options;
  options.threads = 1, options.kv_memory_bytes = 16 << 20;
  options.log = [](std::string_view) {};
  start({"gpt", "en-de", "mlm", "labels", "tags"}, std::move(options));
  const std::vector<std::pair<std::string, Json>> calls = {
      {"/v1/completions", {{"model", "gpt"}, {"max_tokens", 8}}},
      {"/v1/completions", {{"model", "gpt"}, {"max_tokens", 8}, {"stream", true}}},
      {"/v1/completions", {{"model", "gpt"}, {"max_tokens", 4}, {"n", 3}, {"logprobs", 2}}},
      {"/v1/embeddings", {{"model", "mlm"}}},
      {"/translate", {{"model", "en-de"}, {"alternatives", 2}, {"alignments", true}}},
      {"/v1/heed/fill", {{"model", "mlm"}}},
      {"/v1/heed/classify", {{"model", "labels"}}},
      {"/v1/heed/tag", {{"model", "tags"}}},
      {"/v1/heed/score", {{"model", "gpt"}}},
      {"/v1/heed/attend", {{"model", "en-de"}}},
      {"/v1/heed/predict", {{"model", "gpt"}}},
      {"/v1/heed/tokenize", {{"model", "gpt"}}},
      {"/v1/completions", {{"model", "gpt"}, {"temperature", 9}}},  // refused
      {"/nowhere", Json::object()},
  };
  constexpr std::string_view kWords[] = {"the", "cat", "sat", "on", "mat", "dog", "she", "fast"};
  std::atomic<int64_t> requests{0}, errors{0};
  const auto load = [&](double time) {
    std::vector<std::thread> clients;
    const auto start = Clock::now();
    for (int c = 0; c < kClients; ++c) {
      clients.emplace_back([&, c] {
        const Client own = client();
        for (size_t i = static_cast<size_t>(c); seconds_since(start) < time; ++i) {
          auto [path, call] = calls[i % calls.size()];
          std::string text = path.ends_with("fill") ? "[MASK]" : "a";
          for (size_t w = 0; w < 2 + i % 7; ++w)
            text += " " + std::string(kWords[(i * (w + 3)) % 8]);
          const bool is_prompt = path == "/v1/completions";
          call[is_prompt ? "prompt" : path == "/translate" ? "q" : "input"] = text;
          const int status = own.post(path, call).status;
          const int expected = path == "/nowhere"                  ? 404
                               : call.value("temperature", 0) == 9 ? 400
                                                                   : 200;
          errors += status != expected, ++requests;
        }
      });
    }
    for (std::thread& thread : clients) thread.join();
  };
  load(seconds / 2);
  const double warm = allocated_mb(), warm_resident = resident_mb();
  const int64_t warm_requests = requests;
  load(seconds / 2);
  const double end = allocated_mb(), end_resident = resident_mb();
  std::printf(
      "%lld requests, then %lld more: %.2f MB allocated, then %.2f; resident %.1f, then %.1f\n",
      static_cast<long long>(warm_requests), static_cast<long long>(requests - warm_requests), warm,
      end, warm_resident, end_resident);
  EXPECT_EQ(errors, 0);
  EXPECT_GT(requests - warm_requests, 1000);
  // Caches of 64 threads, and no more.
  EXPECT_LT(end, warm + 1);
  EXPECT_LT(end_resident, warm_resident * 1.15);
}

}  // namespace
}  // namespace heed::serve
