#include <array>
#include <cmath>

#include "base/arena.h"
#include "base/philox.h"
#include "bench/row.h"
#include "kernels/attention/rope.h"
#include "kernels/rows/activation.h"
#include "kernels/rows/optimizer.h"
#include "kernels/rows/softmax.h"
#include "ops/ctx.h"

namespace heed::bench {
namespace {

constexpr int64_t kWidth = 512, kHeads = 8;
constexpr int kMaxArrays = 4;

// Matrices [rows, kWidth] of a kernel; their meaning is in each row.
using Arrays = std::array<float*, kMaxArrays>;

struct Kernel {
  const char* name;
  int arrays;    // how many it touches
  double moves;  // how many of them are read, and how many written, together
  bool in_place;
  void (*run)(const Arrays& arrays, int64_t first_row, int64_t rows);
};

using kernels::Activation;

constexpr Kernel kKernels[] = {
    {"gelu forward", 2, 2, false,  // x → y
     [](const Arrays& a, int64_t first, int64_t rows) {
       kernels::activate(Activation::gelu, a[0] + first * kWidth, a[1] + first * kWidth,
                         rows * kWidth);
     }},
    {"gelu backward", 3, 3, false,  // x, dy → dx
     [](const Arrays& a, int64_t first, int64_t rows) {
       kernels::activate_backward(Activation::gelu, a[0] + first * kWidth, a[1] + first * kWidth,
                                  a[2] + first * kWidth, rows * kWidth);
     }},
    {"gelu_tanh forward", 2, 2, false,
     [](const Arrays& a, int64_t first, int64_t rows) {
       kernels::activate(Activation::gelu_tanh, a[0] + first * kWidth, a[1] + first * kWidth,
                         rows * kWidth);
     }},
    {"adam", 4, 7, true,  // gradient; value, m and v are read and written
     [](const Arrays& a, int64_t first, int64_t rows) {
       const int64_t at = first * kWidth;
       kernels::adam({.learning_rate = 1e-4f, .weight_decay = 0.01f}, a[0] + at, a[1] + at,
                     a[2] + at, a[3] + at, rows * kWidth);
     }},
    // Read and written in place, and the tables, for eight heads half a head wide each.
    {"rope", 3, 2 + 2 * 0.5 / kHeads, true,
     [](const Arrays& a, int64_t first, int64_t rows) {
       constexpr int64_t kPairs = kWidth / kHeads / 2;
       kernels::rope({.x = a[0] + first * kWidth,
                      .stride = kWidth,
                      .cos = a[1] + first * kPairs,
                      .sin = a[2] + first * kPairs,
                      .rows = rows,
                      .heads = kHeads,
                      .head_dim = kWidth / kHeads,
                      .rotary_dim = kWidth / kHeads});
     }},
};

Time measure(const Kernel& kernel, int64_t rows, Bench& bench) {
  const auto floats = static_cast<size_t>(rows * kWidth);
  Arena memory(static_cast<size_t>(kernel.arrays) * floats * sizeof(float));
  Arrays arrays{};
  Random random({.seed = bench.seed, .site = 1});
  for (int i = 0; i < kernel.arrays; ++i) {
    float* data = arrays[static_cast<size_t>(i)] = memory.allocate<float>(floats);
    constexpr size_t kDistinct = 65521;
    for (size_t j = 0; j < floats; ++j) {
      // Any sign for the first; the others may be probabilities, sines or squares.
      data[j] = j >= kDistinct ? data[j - kDistinct] : i == 0 ? random.normal() : random.uniform();
    }
  }
  return {best_seconds(bench.seconds, [&] {
    const Clock::time_point start = Clock::now();
    bench.pool.parallel_for(rows, row_grain(kWidth), [&](int64_t begin, int64_t end) {
      kernel.run(arrays, begin, end - begin);
    });
    return seconds_since(start);
  })};
}

}  // namespace

void add_kernel_rows(const SpeedSizes& sizes, std::vector<Row>& rows) {
  for (const Kernel& kernel : kKernels) {
    for (const bool memory : {true, false}) {
      const int64_t floats = memory ? sizes.memory_floats : sizes.l2_floats;
      const int64_t height = std::max<int64_t>(floats / (kernel.arrays * kWidth), 1);
      rows.push_back(
          {.name = kernel.name,
           .shape = std::to_string(height) + "x" + std::to_string(kWidth),
           .cost = {0, sizeof(float) * kernel.moves * static_cast<double>(height * kWidth)},
           .limit = memory ? Limit::memory : Limit::l2,
           .traffic = kernel.in_place ? Traffic::update : Traffic::copy,
           .measure = [&kernel, height](Bench& b) { return bench::measure(kernel, height, b); }});
    }
  }
}

}  // namespace heed::bench
