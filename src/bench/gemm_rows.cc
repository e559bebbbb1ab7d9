#include <dnnl.h>

#include <chrono>
#include <thread>

#include "base/arena.h"
#include "base/check.h"
#include "base/philox.h"
#include "bench/library_threads.h"
#include "bench/limits.h"
#include "bench/row.h"
#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul.h"

namespace heed::bench {
namespace {

using kernels::Gemm;
using kernels::Matmul;

// One layer's matrix in training: activations [rows, in] times weights [out, in].
struct Layer {
  const char* name;
  int64_t rows, in, out;
};

// Projections, both matrices of the feed-forward layer, and the output layer, which is computed in
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

// A decode step of a few sequences.
constexpr Layer kDecodingLayers[] = {
    {"decoding transformer-base ffn_in", 1, 512, 2048},
    {"decoding transformer-base ffn_out", 1, 2048, 512},
    {"decoding gpt2 output", 1, 768, 50257},
    {"decoding transformer-base ffn_in", 4, 512, 2048},
    {"decoding gpt2 output", 4, 768, 50257},
    {"decoding transformer-base ffn_in", 8, 512, 2048},
    {"decoding gpt2 output", 8, 768, 50257},
    {"decoding transformer-base ffn_in", 16, 512, 2048},
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

void fill(float* data, size_t count, Random& random) {
  constexpr size_t kDistinct = 4099;
  for (size_t i = 0; i < count; ++i) {
    data[i] = i < kDistinct ? random.uniform() - 0.5f : data[i - kDistinct];
  }
}

// Alternates between ours(gemm) and the library, so that noise affects both. Between turns the
// threads of the other side get time to stop spinning.
template <class Ours>
Time measure(const Gemm& shape, Bench& bench, const Ours& ours) {
  constexpr double kTurns = 8;
  constexpr std::chrono::milliseconds kPause{4};
  const auto a_size = static_cast<size_t>(shape.m * shape.k);
  const auto b_size = static_cast<size_t>(shape.k * shape.n);
  const auto c_size = static_cast<size_t>(shape.m * shape.n);
  Arena memory((a_size + b_size + c_size) * sizeof(float) + 3 * Arena::kAlignment);
  float* a = memory.allocate<float>(a_size);
  float* b = memory.allocate<float>(b_size);
  Random random({.seed = bench.seed, .site = 2});
  fill(a, a_size, random), fill(b, b_size, random);
  Gemm gemm = shape;
  gemm.a = a, gemm.b = b, gemm.c = memory.allocate<float>(c_size);

  const Clock::time_point start = Clock::now();
  Time best{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  for (int turn = 0; turn < 2 || seconds_since(start) < 2 * bench.seconds; ++turn) {
    best.seconds = std::min(best.seconds, best_seconds(bench.seconds / kTurns,
                                                       [&] { return timed([&] { ours(gemm); }); }));
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

// The GEMM x Wᵀ by the forward's matmul.
Matmul as_matmul(const Gemm& g, float* scratch) {
  return {.m = g.m,
          .n = g.n,
          .k = g.k,
          .x = g.a,
          .x_row = g.lda,
          .w = g.b,
          .w_row = g.ldb,
          .y = g.c,
          .y_row = g.ldc,
          .scratch = scratch};
}

Arena scratch_for(const Layer& layer, ThreadPool& pool) {
  const int64_t floats =
      kernels::matmul_scratch_floats(layer.rows, layer.out, layer.in, pool.threads());
  return Arena(static_cast<size_t>(floats) * sizeof(float));
}

Time measure_forward(const Layer& layer, Bench& bench) {
  Arena arena = scratch_for(layer, bench.pool);
  float* scratch = arena.allocate<float>(arena.capacity_bytes() / sizeof(float));
  return measure(training_products(layer)[0].gemm, bench,
                 [&](const Gemm& g) { kernels::matmul(bench.pool, as_matmul(g, scratch)); });
}

// A decode step reads the weights of many layers, so none is still in cache when it is used again.
Time measure_decoding(const Layer& layer, Bench& bench) {
  const int64_t weight = layer.in * layer.out;
  const int64_t far = far_bytes() / static_cast<int64_t>(sizeof(float));
  const int64_t weights = std::max<int64_t>(far / weight, 2);
  Arena arena = scratch_for(layer, bench.pool);
  float* scratch = arena.allocate<float>(arena.capacity_bytes() / sizeof(float));
  Arena memory(static_cast<size_t>(weights * weight + layer.rows * (layer.in + layer.out)) *
                   sizeof(float) +
               3 * Arena::kAlignment);
  float* w = memory.allocate<float>(static_cast<size_t>(weights * weight));
  float* x = memory.allocate<float>(static_cast<size_t>(layer.rows * layer.in));
  float* y = memory.allocate<float>(static_cast<size_t>(layer.rows * layer.out));
  Random random({.seed = bench.seed, .site = 3});
  fill(w, static_cast<size_t>(weights * weight), random);
  fill(x, static_cast<size_t>(layer.rows * layer.in), random);
  Gemm g = training_products(layer)[0].gemm;
  g.a = x, g.c = y;
  const double seconds = best_seconds(bench.seconds, [&] {
    return timed([&] {
      for (int64_t i = 0; i < weights; ++i) {
        g.b = w + i * weight;
        kernels::matmul(bench.pool, as_matmul(g, scratch));
      }
    });
  });
  return {seconds / static_cast<double>(weights)};
}

std::string shape_of(int64_t m, int64_t n, int64_t k) {
  return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
}

Cost cost_of(int64_t m, int64_t n, int64_t k) {
  const auto flops = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return {flops, sizeof(float) * static_cast<double>(m * k + k * n + m * n)};
}

}  // namespace

void add_gemm_rows(std::vector<Row>& rows) {
  for (const Layer& layer : kLayers) {
    for (const Product& product : training_products(layer)) {
      const Gemm gemm = product.gemm;
      rows.push_back({.name = std::string("gemm ") + layer.name + " " + product.direction,
                      .shape = shape_of(gemm.m, gemm.n, gemm.k),
                      .cost = cost_of(gemm.m, gemm.n, gemm.k),
                      .limit = Limit::gemm,
                      .traffic = Traffic::copy,
                      .measure = [gemm](Bench& bench) {
                        return measure(gemm, bench,
                                       [&](const Gemm& g) { kernels::gemm(bench.pool, g); });
                      }});
    }
  }
}

void add_matmul_rows(std::vector<Row>& rows) {
  for (const Layer& layer : kLayers) {
    rows.push_back({.name = std::string("matmul ") + layer.name,
                    .shape = shape_of(layer.rows, layer.out, layer.in),
                    .cost = cost_of(layer.rows, layer.out, layer.in),
                    .limit = Limit::gemm,
                    .traffic = Traffic::copy,
                    .measure = [layer](Bench& bench) { return measure_forward(layer, bench); }});
  }
  for (const Layer& layer : kDecodingLayers) {
    rows.push_back({.name = std::string("matmul ") + layer.name,
                    .shape = shape_of(layer.rows, layer.out, layer.in),
                    .cost = cost_of(layer.rows, layer.out, layer.in),
                    .limit = Limit::memory,
                    .traffic = Traffic::read,
                    .measure = [layer](Bench& bench) { return measure_decoding(layer, bench); }});
  }
}

}  // namespace heed::bench
