// packed_matmul of each weight type: one row as in a decode step, bound by reading the weight, and
// many rows, bound by arithmetic.
#include <algorithm>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/philox.h"
#include "bench/row.h"
#include "kernels/matmul/packed_matmul.h"

namespace heed::bench {
namespace {

using kernels::PackedWeight;
using kernels::WeightType;

struct Shape {
  WeightType type;
  int64_t m, n, k;

  int64_t weight_bytes() const { return kernels::packed_bytes(type, n, k); }
};

float* random_floats(Arena& memory, int64_t count, Random& random) {
  constexpr int64_t kDistinct = 4099;
  float* values = memory.allocate<float>(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[i] = i < kDistinct ? random.uniform() - 0.5f : values[i - kDistinct];
  }
  return values;
}

// All rows are the same: what is in them takes no part in the time.
void fill(const PackedWeight& w, const float* row) {
  const auto bytes = static_cast<size_t>(kernels::packed_bytes(w.type, w.n, w.k));
  std::fill_n(w.memory, bytes, std::byte{0});
  std::vector<std::byte> numbers(static_cast<size_t>(kernels::quantized_row_bytes(w.type, w.k)));
  std::vector<float> scales(static_cast<size_t>(kernels::quantized_row_scales(w.type, w.k)));
  kernels::quantize_rows(w.type, {row, 1, w.k}, numbers.data(), scales.data());
  for (int64_t j = 0; j < w.n; ++j) {
    kernels::pack_rows(w, j, 1, numbers.data(), scales.data());
  }
}

Time measure(const Shape& s, Bench& bench) {
  PackedWeight w{s.type, s.n, s.k};
  const int64_t scratch_floats =
      std::max<int64_t>(1, kernels::packed_matmul_scratch_floats(s.m, w, bench.pool.threads()));
  const auto weight_bytes = static_cast<size_t>(s.weight_bytes());
  Arena memory(weight_bytes +
               static_cast<size_t>(s.m * s.k + s.m * s.n + scratch_floats) * sizeof(float) +
               4 * Arena::kAlignment);
  Random random({.seed = bench.seed, .site = 3});
  const float* x = random_floats(memory, s.m * s.k, random);
  float* y = memory.allocate<float>(static_cast<size_t>(s.m * s.n));
  float* scratch = memory.allocate<float>(static_cast<size_t>(scratch_floats));
  w.memory = memory.allocate<std::byte>(weight_bytes);
  fill(w, x);
  return {best_seconds(bench.seconds, [&] {
    const Clock::time_point start = Clock::now();
    kernels::packed_matmul(
        bench.pool,
        {.m = s.m, .x = x, .x_row = s.k, .w = w, .y = y, .y_row = s.n, .scratch = scratch});
    return seconds_since(start);
  })};
}

}  // namespace

void add_packed_rows(std::vector<Row>& rows) {
  // GPT-2's output layer, larger than the caches in every type, and its feed-forward layer.
  constexpr int64_t kOutput = 50257, kFeedForward = 3072, kWidth = 768;
  for (const kernels::WeightTypeInfo& type : kernels::weight_types()) {
    for (const int64_t m : {int64_t{1}, int64_t{4}, int64_t{32}, int64_t{128}}) {
      const bool few = m <= 4;
      const Shape s{type.type, m, few ? kOutput : kFeedForward, kWidth};
      const auto flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n * s.k);
      rows.push_back(
          {.name = std::string("packed matmul ") + type.name,
           .shape = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k),
           .cost = {flops, static_cast<double>(s.weight_bytes())},
           .limit = few ? Limit::memory : Limit::gemm,
           .traffic = Traffic::read,
           .measure = [s](Bench& bench) { return measure(s, bench); }});
    }
  }
}

}  // namespace heed::bench
