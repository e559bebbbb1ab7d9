#include <dnnl.h>
#include <omp.h>

#include <chrono>
#include <thread>

#include "base/arena.h"
#include "base/check.h"
#include "base/philox.h"
#include "bench/row.h"
#include "kernels/gemm.h"

namespace heed::bench {
namespace {

using kernels::Gemm;

// One layer's matrix in training: activations [rows, in] times weights [out, in].
struct Layer {
  const char* name;
  int64_t rows, in, out;
};

// Projections, both halves of the feed-forward layer, and the output layer, which is computed in
// tiles of rows.
constexpr Layer kLayers[] = {
    {"transformer-tiny projection", 4080, 128, 128},
    {"transformer-tiny ffn_in", 4080, 128, 256},
    {"transformer-tiny ffn_out", 4080, 256, 128},
    {"transformer-tiny output", 1360, 128, 10000},
    {"transformer-base projection", 1008, 512, 512},
    {"transformer-base ffn_in", 1008, 512, 2048},
    {"transformer-base ffn_out", 1008, 2048, 512},
    {"transformer-base output", 512, 512, 32000},
    {"gpt2 qkv", 256, 768, 2304},
    {"gpt2 projection", 256, 768, 768},
    {"gpt2 ffn_in", 256, 768, 3072},
    {"gpt2 ffn_out", 256, 3072, 768},
    {"gpt2 output", 256, 768, 50257},
};

struct Product {
  const char* direction;
  Gemm gemm;  // without its matrices
};

// x Wᵀ;  dX = dZ W;  dW = dZᵀ X.
std::vector<Product> training_products(const Layer& layer) {
  const int64_t rows = layer.rows, in = layer.in, out = layer.out;
  return {{"forward",
           {.transpose_b = true, .m = rows, .n = out, .k = in, .lda = in, .ldb = in, .ldc = out}},
          {"dX", {.m = rows, .n = in, .k = out, .lda = out, .ldb = in, .ldc = in}},
          {"dW",
           {.transpose_a = true, .m = out, .n = in, .k = rows, .lda = out, .ldb = in, .ldc = in}}};
}

// Lets oneDNN use OpenMP's threads, as many as our pool has, and restores the setting.
class LibraryThreads {
 public:
  explicit LibraryThreads(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~LibraryThreads() { omp_set_num_threads(before_); }
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int before_;
};

void onednn_gemm(const Gemm& g) {
  const dnnl_status_t status = dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m,
                                          g.n, g.k, 1.0f, g.a, g.lda, g.b, g.ldb, 0.0f, g.c, g.ldc);
  HEED_CHECK(status == dnnl_success, "dnnl_sgemm failed");
}

template <class Call>
double timed(const Call& call) {
  const Clock::time_point start = Clock::now();
  call();
  return seconds_since(start);
}

// Turns: some calls of ours, some of the library's, and so on, so that noise meets both. Between
// turns the threads of the other side get time to stop spinning.
Time measure(const Gemm& shape, Bench& bench) {
  constexpr double kTurns = 8;
  constexpr std::chrono::milliseconds kPause{4};
  const auto a_size = static_cast<size_t>(shape.m * shape.k);
  const auto b_size = static_cast<size_t>(shape.k * shape.n);
  const auto c_size = static_cast<size_t>(shape.m * shape.n);
  Arena memory((a_size + b_size + c_size) * sizeof(float) + 3 * Arena::kAlignment);
  float* a = memory.allocate<float>(a_size);
  float* b = memory.allocate<float>(b_size);
  Random random({.seed = bench.seed, .site = 2});
  for (size_t i = 0; i < a_size; ++i) a[i] = i < 4099 ? random.uniform() - 0.5f : a[i - 4099];
  for (size_t i = 0; i < b_size; ++i) b[i] = i < 4099 ? random.uniform() - 0.5f : b[i - 4099];
  Gemm gemm = shape;
  gemm.a = a, gemm.b = b, gemm.c = memory.allocate<float>(c_size);

  const Clock::time_point start = Clock::now();
  Time best{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  for (int turn = 0; turn < 2 || seconds_since(start) < 2 * bench.seconds; ++turn) {
    best.seconds = std::min(best.seconds, best_seconds(bench.seconds / kTurns, [&] {
                              return timed([&] { kernels::gemm(bench.pool, gemm); });
                            }));
    std::this_thread::sleep_for(kPause);
    {
      const LibraryThreads threads(bench.pool.threads());
      best.onednn_seconds = std::min(best.onednn_seconds, best_seconds(bench.seconds / kTurns, [&] {
                                       return timed([&] { onednn_gemm(gemm); });
                                     }));
    }
    std::this_thread::sleep_for(kPause);
  }
  return best;
}

}  // namespace

void add_gemm_rows(std::vector<Row>& rows) {
  for (const Layer& layer : kLayers) {
    for (const Product& product : training_products(layer)) {
      const Gemm gemm = product.gemm;
      const auto m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n);
      const auto k = static_cast<double>(gemm.k);
      rows.push_back({.name = std::string("gemm ") + layer.name + " " + product.direction,
                      .shape = std::to_string(gemm.m) + "x" + std::to_string(gemm.n) + "x" +
                               std::to_string(gemm.k),
                      .cost = {2 * m * n * k, sizeof(float) * (m * k + k * n + m * n)},
                      .limit = Limit::gemm,
                      .in_place = false,
                      .measure = [gemm](Bench& bench) { return measure(gemm, bench); }});
    }
  }
}

}  // namespace heed::bench
