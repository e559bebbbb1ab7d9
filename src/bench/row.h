// A row of `heed bench ops`, before it is measured.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "heed/bench.h"

namespace heed::bench {

class GemmLimit;

// Useful operations of one call, and the bytes it must move: each operand once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

// Sizes that depend on the machine, in floats: all the operands of one row together.
struct SpeedSizes {
  int64_t memory_floats = 0;  // far more than the caches hold
  int64_t l2_floats = 0;      // fits the L2 caches of the threads in use
};

// What a row is measured with.
struct Bench {
  ThreadPool& pool;
  double seconds = 0;  // how long to repeat it
  uint64_t seed = 0;   // of its random inputs
  // For rows that alternate with it; created by the first of them.
  std::shared_ptr<GemmLimit> gemm{};
};

// The best of repeated calls of run(), which returns the measured seconds. At least two: the first
// one also touches its memory for the first time.
template <class Run>
double best_seconds(double seconds, const Run& run) {
  const Clock::time_point start = Clock::now();
  double best = std::numeric_limits<double>::infinity();
  for (int runs = 0; runs < 2 || seconds_since(start) < seconds; ++runs) {
    best = std::min(best, run());
  }
  return best;
}

struct Time {
  double seconds = 0;         // best of one call
  double onednn_seconds = 0;  // the same GEMM by oneDNN; 0: not compared
  // Of a limit that alternated with it; 0: use the best of the whole run.
  double fraction_of_limit = 0;
};

// Access pattern of a memory-bound row; each has a limit.
enum class Traffic {
  copy,    // reads one array, writes another
  update,  // in place
  read     // hardly writes
};

struct Row {
  std::string name, shape;
  Cost cost;
  Limit limit = Limit::memory;
  Traffic traffic = Traffic::copy;
  std::function<Time(Bench&)> measure;
};

// gemm_rows.cc: gemm() and matmul() on the shapes of training, next to multi-threaded oneDNN; matmul()
// as GEMV, next to reading the weight.
void add_gemm_rows(std::vector<Row>& rows);
void add_matmul_rows(std::vector<Row>& rows);
// op_rows.cc: ops at sizes of real models.
void add_op_rows(const SpeedSizes& sizes, std::vector<Row>& rows);
// attention_rows.cc: attention over long sequences, over rows and over KV blocks.
void add_attention_rows(std::vector<Row>& rows);
// kernel_rows.cc: kernels that are not ops, or only an op's epilogue.
void add_kernel_rows(const SpeedSizes& sizes, std::vector<Row>& rows);
// packed_rows.cc: packed_matmul() of each weight type.
void add_packed_rows(std::vector<Row>& rows);

}  // namespace heed::bench
